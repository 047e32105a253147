"""Translations of pieces, put together to those of their lines."""

from t2t_lite.decoding.line_predictor import Translation


def join_pieces(pieces, by_piece, num_lines):
    """Returns two Translations of each line, with scores of -1 and -2.

    Args:
        pieces: Pieces of the lines.
        by_piece: two Translations of each piece.
        num_lines: int.
    """
    return [
        [
            Translation(
                " ".join(
                    by_piece[n][rank].text
                    for n, line in enumerate(pieces.line_indices)
                    if line == index
                ),
                -1.0 - rank,
            )
            for rank in range(2)
        ]
        for index in range(num_lines)
    ]
