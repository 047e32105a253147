"""Lines of English and German, to learn a vocabulary from."""

import itertools

_SUBJECTS = ("A dog", "Two men", "Ein Mädchen", "Zwei Hunde", "The old boat")
_VERBS = ("sees", "is running past", "läuft über", "springt auf", "carries")
_PLACES = ("the water", "a red ball", "die Straße", "den Fluss", "das Gras")
CORPUS = [
    f"{subject} {verb} {place}{end}"
    for subject, verb, place in itertools.product(_SUBJECTS, _VERBS, _PLACES)
    for end in (".", " today!", " — 3 times?")
]
