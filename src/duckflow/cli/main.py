"""The `duckflow` command. Slow modules are imported only when they are needed."""

import atexit
import gc
import os
import sys


def main() -> None:
    """Entry point of the console script."""
    codes: list[int] = []
    atexit.register(_leave, codes)
    open_streams()
    try:
        code = _run(sys.argv[1:])
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0
    except KeyboardInterrupt:
        from duckflow.errors import exit_code_of

        code = exit_code_of("interrupted")
    except BrokenPipeError:
        # The program that read our output has gone, so it already has what it wanted.
        code = 0
    except Exception as problem:
        from duckflow.cli.last_resort import report_crash

        code = report_crash(problem)
    if not flush_streams() and code == 0:
        from duckflow.cli.last_resort import report_lost_output

        code = report_lost_output()
    codes.append(code)
    sys.exit(code)


def _leave(codes: list[int]) -> None:
    """Ends the process immediately, without freeing all loaded modules one by one. It is registered as the first exit
    handler, so it runs last, when all threads have ended."""
    if codes and flush_streams():
        os._exit(codes[0])


def _run(argv: list[str]) -> int:
    if argv in (["--version"], ["-V"], ["version"]):
        from duckflow import __version__

        return _print(f"duckflow {__version__}\n")
    # Objects that are made while modules load stay for good: collecting garbage in between only costs time.
    gc.disable()
    _leave_folder()
    from duckflow.cli.run import run

    return run(argv)


def _leave_folder() -> None:
    from duckflow.programs.find import keep_modules_out, keep_temporary_files_out

    try:
        keep_modules_out(".")
        if not {"TMPDIR", "TEMP", "TMP"}.isdisjoint(os.environ):
            keep_temporary_files_out((".",))
    except OSError:
        # The folder is gone, which is reported later.
        return


def _print(text: str) -> int:
    try:
        sys.stdout.write(text)
    except BrokenPipeError:
        return 0
    except OSError:
        from duckflow.cli.last_resort import report_lost_output

        return report_lost_output()
    return 0


MODES = {"stdin": "r", "stdout": "w", "stderr": "w"}


def open_streams() -> None:
    """Points closed streams to the null device. Otherwise the next opened file would take a closed stream's number."""
    for file_descriptor, (name, mode) in enumerate(MODES.items()):
        try:
            os.fstat(file_descriptor)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(file_descriptor, mode, encoding="utf-8", closefd=False))


def flush_streams() -> bool:
    """Flushes the output and says whether all of it was written. Output to a closed pipe is silently dropped."""
    all_written = True
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BrokenPipeError:
            _drop(stream.fileno())
        except (OSError, ValueError):
            all_written = stream is not sys.stdout
            _drop(stream.fileno())
    return all_written


def _drop(handle: int) -> None:
    null_handle = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null_handle, handle)
    os.close(null_handle)
