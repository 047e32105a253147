"""Models of other programs, in and out: Marian, Hugging Face, CTranslate2."""
