"""A predictor that needs no search: lines with their words in reverse."""

from t2t_lite.decoding.line_predictor import LinePredictor, Translation


class Reversing(LinePredictor):
    """Translates a line by its words in reverse."""

    def translate(self, lines, first_line=1):
        return [
            [Translation(" ".join(reversed(line.split())), -1.0)]
            for line in lines
        ]
