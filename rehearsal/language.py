"""Made-up text, English-like or Chinese: a passage has key words of its own, and its query some of them.

Common words are real words; key words are made of syllables, or of two characters.  Nothing is copied.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from repro.seeds import stream

Name = Literal["en", "zh"]
KEYS = 3  # key words of a passage
SENTENCE = 7  # words, so that the shortest passage has two sentences to draw an inverse cloze from

_SYLLABLES = """
    ba bel bo cal car co dan del do en fa fel for gal gen go han hel hi in ja jo kan kel lan len lo
    mar mel mi nan nel no or pan pel po qua ran rel ri san sel so tan tel to un val vel vi wan wel zo
"""
_COMMON = """
    the of and a to in is it for on with as at by from that this are was be or an not can has have
    most some each often more small large old new long high low first last early late known made used
    found part form year time place water people work name number kind end side case day way
"""
SYLLABLES, COMMON = _SYLLABLES.split(), _COMMON.split()
ASKING = ["what is", "how does", "where is", "when was", "why is", "who made", "define"]

# Characters in everyday use; a key word is two of the second list, which are in no common word.
ZH_COMMON = list(
    "的一是不了在人有我他这个们中来上大为和国地到以说时要就出会可也你对生能而子那得于着下自之年过发后作里用道行所然家种事成方多经么去法学如都同现当没动面起看定天分还进好小部其些主样理心她本前开但因只从想实日军者意无力它与长把机十民第公此已工使情明性知全三又关点正业外将两高间由问很最重并物手应战向头文体政美相见被利什二等产或新己制身果加西斯月话合回特代内信表化老给世位次度门任常先海通教儿原东声提立及比员解水名真论处走义各入几口认条平系气题活尔更别打女变四神总何电数安少报才结反受目太量再感建务做接必场件计管期市直德资命山金指克许统区保至队形社便空决治展马科司五基眼书非则听白却界达光放强即像难且权思王象完设式色路记南品住告类求据程北边死张该交规万取拉格望觉术领共确传师观清今切院让识候带导争运"
)
ZH_KEYS = list(
    "铜铁银锡铝锌镍钛钴铅麦稻粟豆棉麻茶桑竹松柏杉柳桃梅兰菊荷葵菱狼熊鹿兔狐猫犬牛羊猪鸭鹅鹰雁鹤鸽鲤鲸鲨虾蟹蚕蜂蝶蚁蛙龟蛇"
)
ZH_ASKING = ["什么是", "如何使用", "哪里有", "为什么", "怎样区分", "谁发现了"]


class Language:
    """A seeded writer of passages and queries in one language; one seed and name, one text."""

    def __init__(self, language: Name, seed: int, *names: str) -> None:
        self.language = language
        self.random = stream(seed, "rehearsal", language, *names)
        self._used: set[str] = set()

    def keys(self) -> list[str]:
        """The key words of one passage, the first of them in no other's."""
        return [self._fresh(), *(self._word(2) for _ in range(KEYS - 1))]

    def passage(self, keys: list[str], words: int) -> str:
        """About `words` words in sentences, each key word once or more."""
        body = self._draw(COMMON if self.language == "en" else ZH_COMMON, words)
        for key in [*keys, keys[0]]:
            body.insert(int(self.random.integers(len(body) + 1)), key)
        sentences = [body[at : at + SENTENCE] for at in range(0, len(body), SENTENCE)]
        if self.language == "zh":
            return "".join("".join(sentence) + "。" for sentence in sentences)
        return " ".join(" ".join(sentence).capitalize() + "." for sentence in sentences)

    def query(self, keys: list[str], *, loose: bool = False) -> str:
        """A question that holds the first key word and another; loose: without a question word."""
        second = keys[1 + int(self.random.integers(len(keys) - 1))]
        if self.language == "zh":
            asked = "" if loose else self._draw(ZH_ASKING, 1)[0]
            return asked + keys[0] + "".join(self._draw(ZH_COMMON, 2)) + second
        words = [keys[0], *self._draw(COMMON, 2), second]
        return " ".join(words if loose else [self._draw(ASKING, 1)[0], *words])

    def title(self, keys: list[str]) -> str:
        """A title of the passage with these key words."""
        return "".join(keys[:2]) if self.language == "zh" else " ".join(keys[:2]).title()

    def _word(self, syllables: int) -> str:
        if self.language == "zh":
            return "".join(self._draw(ZH_KEYS, 2, even=True))
        return "".join(self._draw(SYLLABLES, syllables, even=True))

    def _fresh(self) -> str:
        while (word := self._word(3)) in self._used:
            pass
        self._used.add(word)
        return word

    def _draw(self, words: list[str], n: int, *, even: bool = False) -> list[str]:
        """`n` of `words`, the first ones oftener unless all are to come as often."""
        if even:
            rank = self.random.integers(len(words), size=n).astype(float)
        else:
            rank = np.minimum(self.random.exponential(len(words) / 3, n), len(words) - 1)
        return [words[int(index)] for index in rank]
