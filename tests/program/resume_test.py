"""A run that is killed at random moments ends with the weights and metrics of one that was not, and so
does one with another number of threads."""

import filecmp
import random
import shutil
import signal
import subprocess
import time

from support import Program, metrics, newest_checkpoint

KILLS = 6
LATEST_KILL = 150  # of the recipe's 200 steps: moments are steps, as seconds differ between machines
FILES = ["model.safetensors", "optimizer.safetensors", "config.json"]


def same_outcome(a, b):
    first, second = newest_checkpoint(a), newest_checkpoint(b)
    assert first.name == second.name, (first, second)
    for name in FILES:
        assert filecmp.cmp(first / name, second / name, shallow=False), f"{name} differs in {b}"
    for key in ("step", "loss", "grad_norm", "val_loss"):
        assert metrics(a, key) == metrics(b, key), f"{key} differs in {b}"


def lines(file):
    return file.read_bytes().count(b"\n") if file.exists() else 0


def signalled(program, recipe, out, number, step, delay=0.0):
    """Starts or resumes a run and signals it once it has written the metrics of `step`. Returns its
    exit status and output. Where the signal came too late because this test was not given the
    processor, the run starts anew."""
    for _ in range(5):
        process = subprocess.Popen(program.command("train", recipe, "--out", out),
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        while process.poll() is None and lines(out / "metrics.jsonl") < step:
            time.sleep(0.001)
        time.sleep(delay)
        process.send_signal(number)
        output, _ = process.communicate(timeout=60)
        if process.returncode != 0 or "stopped after step" in output:
            return process.returncode, output
        shutil.rmtree(out)
    raise AssertionError(f"signal {number} stopped no run: {output}")


def killed_run(program, recipe, out):
    """Starts the run again and again, killing it at random moments, then lets it finish."""
    rng = random.Random(11)
    for _ in range(KILLS):
        step, delay = rng.randrange(LATEST_KILL), rng.uniform(0, 0.05)
        status, output = signalled(program, recipe, out, signal.SIGKILL, step, delay)
        assert status == -signal.SIGKILL, output
    program.run("train", recipe, "--out", out)


def interrupted_run(program, recipe, out):
    """SIGTERM finishes the step, saves and exits 0."""
    status, output = signalled(program, recipe, out, signal.SIGTERM, step=60)
    assert status == 0, output
    program.run("train", recipe, "--out", out)


def check(program, dtype):
    recipe = program.write_recipe(f"{dtype}.toml")
    recipe.write_text(f'dtype = "{dtype}"\n' + recipe.read_text())
    plain = program.scratch / f"{dtype}-plain"
    program.run("--threads", 1, "train", recipe, "--out", plain)
    program.run("--threads", 2, "train", recipe, "--out", program.scratch / f"{dtype}-threads")
    same_outcome(plain, program.scratch / f"{dtype}-threads")
    killed_run(program, recipe, program.scratch / f"{dtype}-killed")
    same_outcome(plain, program.scratch / f"{dtype}-killed")
    interrupted_run(program, recipe, program.scratch / f"{dtype}-interrupted")
    same_outcome(plain, program.scratch / f"{dtype}-interrupted")


def main():
    program = Program()
    program.pack_corpus()
    for dtype in ("f32", "bf16"):
        check(program, dtype)


main()
