"""Runs a script with `time.perf_counter` set to this thread's processor time, so that other work hardly changes it.

usage: python -m benchmarks.processor_time SCRIPT [ARGUMENTS…]
"""

import runpy
import sys
import time

if __name__ == "__main__":
    time.perf_counter = time.thread_time
    sys.argv.pop(0)
    runpy.run_path(sys.argv[0], run_name="__main__")
