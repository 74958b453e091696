"""An encoder as a folder that sentence-transformers loads and that gives the same vectors.

The layout is the one that sentence-transformers 6.2 writes and reads: modules.json names the parts,
each with its settings in a folder of its own.  Nothing of that library is needed to write it.
"""

from __future__ import annotations

import json
import shutil
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from repro.model import pretrained, tensors
from repro.model.encoder import Encoder
from repro.model.pretrained import Pretrained
from repro.model.texts import TextParams

LIBRARY = "sentence_transformers"
MADE_FOR = "6.2.0"  # the release that the folder was compared with (tests/model/test_exported.py)


def export(
    out: Path,
    encoder: Encoder,
    source: Pretrained,
    texts: TextParams,
    about: Mapping[str, Any],
    spec: str = "{}\n",
) -> None:
    """Write `encoder` into the new folder `out`, whole or not at all.

    about: what README.md says of where it comes from, name -> value.  spec: JSON, all that determines
    the run; it becomes repro-spec.json.
    """
    work = out.with_name(f".{out.name}.{uuid.uuid4().hex[:8]}")
    work.mkdir(parents=True)
    try:
        pretrained.save(source, encoder.backbone, work, texts.passage_tokens)
        _write_modules(work, encoder, source, texts)
        (work / "README.md").write_text(readme(encoder, texts, about), encoding="utf-8")
        (work / "repro-spec.json").write_text(spec, encoding="utf-8")
        work.rename(out)
    except BaseException:
        shutil.rmtree(work, ignore_errors=True)
        raise


def readme(encoder: Encoder, texts: TextParams, about: Mapping[str, Any]) -> str:
    """What the folder is, how it is used, and what its files cannot say."""
    params, width = encoder.params, encoder.projection.out_features
    score = "cosine" if params.scoring == "cosine" else "dot product"
    lines = [
        "---", "library_name: sentence-transformers", "pipeline_tag: sentence-similarity",
        "tags: [sentence-transformers, sentence-similarity, feature-extraction]", "---", "",
        "# A retrieval encoder", "",
        f"For sentence-transformers {MADE_FOR} or later.",
        f"Maps queries and passages to {width} numbers; passages are ranked by the {score} with the "
        "query.", "",
        "| | |", "|---|---|",
        *(f"| {name} | {value} |" for name, value in about.items()),
        f"| pooling | {params.pooling} |",
        f"| query | {texts.query_tokens} tokens at the most, special ones included |",
        f"| passage | {texts.passage_tokens} tokens at the most, special ones included |", "",
        "```python",
        "from sentence_transformers import SentenceTransformer", "",
        'model = SentenceTransformer("this folder")',
        "queries = model.encode_query(list_of_queries)",
        "passages = model.encode_document(list_of_passages)",
        "scores = model.similarity(queries, passages)",
        "```", "",
        "## What the files cannot say", "",
    ]  # fmt: skip
    said = [
        f"It was trained with scores of {float(encoder.scale().detach()):.4g} x {score}: the factor "
        "changes no ranking, and is needed only where scores are taken as the logits of a softmax.",
        "Texts were cleaned before they were cut into tokens: Unicode NFC, no control characters, no "
        "byte order mark, no white space at either end.  Clean yours alike.",
    ]
    if texts.query_tokens != texts.passage_tokens:
        said.insert(
            0,
            f"Queries are cut to {texts.query_tokens} tokens by `encode_query` alone.  `encode`, and "
            f"libraries that know no lengths by task, cut at {texts.passage_tokens}, the length of "
            "passages: there cut queries yourself, or the longer ones get other vectors.",
        )
    if pretrained.has_pooler(encoder.backbone.config):
        said.append(
            "transformers adds a pooler to this network and draws its weights at random when it loads "
            "the folder; nothing here uses it."
        )
    if params.precision != "float32":
        said.append(f"It was trained in {params.precision}; the weights are float32.")
    return "\n".join([*lines, *(f"- {each}" for each in said)]) + "\n"


def _write_modules(work: Path, encoder: Encoder, source: Pretrained, texts: TextParams) -> None:
    """modules.json and, for each part behind the network, its folder."""
    params, width = encoder.params, encoder.projection.out_features
    cosine = params.scoring == "cosine"
    parts = [
        ("", "base.modules.transformer.Transformer"),
        ("1_Pooling", "sentence_transformer.modules.pooling.Pooling"),
        ("2_Dense", "base.modules.dense.Dense"),
        *([("3_Normalize", "base.modules.normalize.Normalize")] if cosine else []),
    ]
    listed = [
        {"idx": i, "name": str(i), "path": path, "type": f"{LIBRARY}.{kind}"}
        for i, (path, kind) in enumerate(parts)
    ]
    for path, _ in parts[1:]:
        (work / path).mkdir()
    _write(work / "modules.json", listed)
    _write(
        work / "sentence_bert_config.json",
        {
            "transformer_task": "feature-extraction",
            "modality_config": {
                "text": {"method": "forward", "method_output_name": "last_hidden_state"}
            },
            "module_output_name": "token_embeddings",
            "query_length": texts.query_tokens,
            "document_length": texts.passage_tokens,
        },
    )
    _write(
        work / "config_sentence_transformers.json",
        {
            "__version__": {LIBRARY: MADE_FOR},
            "model_type": "SentenceTransformer",
            "prompts": {"query": "", "document": ""},
            "default_prompt_name": None,
            "similarity_fn_name": "cosine" if cosine else "dot",
        },
    )
    _write(
        work / "1_Pooling" / "config.json",
        {
            "embedding_dimension": source.width,
            "pooling_mode": params.pooling,
            "include_prompt": True,
        },
    )
    _write(
        work / "2_Dense" / "config.json",
        {
            "in_features": source.width,
            "out_features": width,
            "bias": True,
            "activation_function": "torch.nn.modules.linear.Identity",
            "module_input_name": "sentence_embedding",
            "module_output_name": "sentence_embedding",
        },
    )
    state = {f"linear.{name}": each for name, each in encoder.projection.state_dict().items()}
    tensors.write(work / "2_Dense" / "model.safetensors", state, {"format": "pt"})


def _write(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")
