"""A model that writes text: loaded from a folder or the hub, sampled in batches, by a seed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from repro.errors import UserError
from repro.model import files, pickled, pretrained


def digest(model: str) -> str:
    """sha256, hex, of the files that determine what the model writes; raises `UserError`."""
    folder = files.folder_of(model)
    needed = [folder / "config.json", *files.weight_files(model, folder)]
    extra = [folder / name for name in ("tokenizer_config.json", "chat_template.jinja")]
    return files.digest([*needed, *files.tokenizer_files(folder), *extra])


class Generator:
    """A network and its tokenizer.

    `translates`: whether it reads a text and writes another (T5), or goes on with one (GPT).
    """

    def __init__(self, model: str, *, translates: bool, device: torch.device) -> None:
        self.model, self.translates, self.device = model, translates, device
        folder = files.folder_of(model)
        self.tokenizer, self.network = _load(model, folder, translates, device)
        self.tokenizer.padding_side = "right" if translates else "left"
        if self.tokenizer.pad_token_id is None:
            self.tokenizer.pad_token = self.tokenizer.eos_token

    def prompted(self, prompt: str) -> str:
        """The prompt as a turn of a conversation, where the model has a template for one."""
        if not self.tokenizer.chat_template:
            return prompt
        turn = [{"role": "user", "content": prompt}]
        text: str = self.tokenizer.apply_chat_template(
            turn, tokenize=False, add_generation_prompt=True
        )
        return text

    @torch.inference_mode()
    def write(
        self,
        texts: Sequence[str],
        *,
        each: int,
        max_tokens: int,
        top_k: int,
        temperature: float,
        read_tokens: int | None,
        seed: int,
    ) -> list[list[str]]:
        """For each text, `each` texts that the model writes; the same for the same texts and seed.

        read_tokens: where a text is cut; None: nowhere.  top_k: 1 takes the likeliest token always,
        0 draws from all.  torch's global generators are left as they were.
        """
        inputs = self.tokenizer(
            list(texts),
            return_tensors="pt",
            padding=True,
            truncation=read_tokens is not None,
            max_length=read_tokens,
            add_special_tokens=self.translates or not self.tokenizer.chat_template,
            return_token_type_ids=False,
        ).to(self.device)
        sampled = {"top_k": top_k, "top_p": 1.0, "temperature": temperature, "do_sample": True}
        drawn = sampled if top_k != 1 else {"do_sample": False}
        devices = [self.device] if self.device.type == "cuda" else []
        with torch.random.fork_rng(devices=devices):
            _seed(self.device, seed)
            out = self.network.generate(
                **inputs,
                **drawn,
                num_return_sequences=each if top_k != 1 else 1,
                max_new_tokens=max_tokens,
                num_beams=1,
                pad_token_id=self.tokenizer.pad_token_id,
            )
        if not self.translates:
            out = out[:, inputs["input_ids"].shape[1] :]
        said = self.tokenizer.batch_decode(out, skip_special_tokens=True)
        n = len(said) // len(texts)
        return [said[i * n : (i + 1) * n] for i in range(len(texts))]


def _seed(device: torch.device, seed: int) -> None:
    """Seed the generator that sampling draws from: torch gives `generate` no other."""
    if device.type == "cuda":
        torch.cuda.manual_seed(seed)
    torch.random.default_generator.manual_seed(seed)


def _generation(transformers: Any, folder: Path, own: dict[str, Any]) -> Any:
    """How a model is to write, by its folder; in old ones its configuration says so."""
    kind = transformers.GenerationConfig
    if (folder / "generation_config.json").is_file():
        return kind.from_pretrained(folder, **own)
    return kind.from_pretrained(folder, "config.json", _from_model_config=True, **own)


def _load(model: str, folder: Path, translates: bool, device: torch.device) -> tuple[Any, Any]:
    """Tokenizer and network: float32 on a CPU, as the checkpoint has it elsewhere; in evaluation mode."""
    transformers = pretrained.library()
    own = {"trust_remote_code": False, "local_files_only": True}
    auto = transformers.AutoModelForSeq2SeqLM if translates else transformers.AutoModelForCausalLM
    dtype = torch.float32 if device.type == "cpu" else "auto"
    try:
        config = transformers.AutoConfig.from_pretrained(folder, **own)
        if bool(getattr(config, "is_encoder_decoder", False)) != translates:
            raise UserError(
                f"`{model}` is {'no ' if translates else 'a '}sequence-to-sequence model",
                where=str(folder),
                remedy="labels of the kind doc2query take one such as T5, of the kind llm one such as "
                "Qwen or GPT",
            )
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder, **own)
        place = pickled.readable(files.weight_files(model, folder))
        options = {"config": config, "use_safetensors": True, "dtype": dtype}
        if place != folder:  # which holds weights alone
            options["generation_config"] = _generation(transformers, folder, own)
        network = auto.from_pretrained(place, **options, **own)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, ImportError) as error:
        if isinstance(error, UserError):
            raise
        raise UserError(
            f"transformers cannot read `{model}`: {str(error).strip().splitlines()[0][:200]}",
            where=str(folder),
            remedy="it takes config.json of a known model_type, weights and a tokenizer",
        ) from None
    return tokenizer, network.to(device).eval()
