"""What a run does when it diverges: it restarts behind what made it diverge."""

from t2t_lite.optimization.divergence import DivergenceError
from t2t_lite.training.batch_loop import BatchLoop
from t2t_lite.training.run_state import RunState
from t2t_lite.training.stop_signal import StopSignal


def update_with_skips(
    loop: BatchLoop, state: RunState, stop: StopSignal
) -> None:
    """Updates until the run is over, and skips what makes it diverge.

    Args:
        loop: BatchLoop.
        state: RunState.
        stop: StopSignal.

    Raises:
        InputError: the run diverges, and has to stop.
    """
    watchdog = state.watchdog
    while (divergence := _divergence_of_updates(loop, stop)) is not None:
        watchdog.require_skip(divergence)
        skipped = watchdog.skipped
        state.go_back()
        watchdog.skip_until(divergence.step, skipped)
        loop.restart()


def _divergence_of_updates(
    loop: BatchLoop, stop: StopSignal
) -> DivergenceError | None:
    """Updates until the run is over, or returns what shows it diverged."""
    try:
        loop.run(stop)
    except DivergenceError as divergence:
        # Without its frames, which keep the upcoming batches alive.
        return divergence.with_traceback(None)
    return None
