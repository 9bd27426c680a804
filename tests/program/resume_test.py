"""A run that is killed at random moments ends with the weights and metrics of one that was not, and so
does one with another number of threads."""

import filecmp
import random
import signal
import subprocess
import time

from support import Program, metrics, newest_checkpoint

KILLS = 6
FILES = ["model.safetensors", "optimizer.safetensors", "config.json"]


def same_outcome(a, b):
    first, second = newest_checkpoint(a), newest_checkpoint(b)
    assert first.name == second.name, (first, second)
    for name in FILES:
        assert filecmp.cmp(first / name, second / name, shallow=False), f"{name} differs in {b}"
    for key in ("step", "loss", "grad_norm", "val_loss"):
        assert metrics(a, key) == metrics(b, key), f"{key} differs in {b}"


def killed_run(program, recipe, out, seconds):
    """Starts the run again and again, killing it at random moments, then lets it finish."""
    rng = random.Random(11)
    kills = 0
    while kills < KILLS:
        process = subprocess.Popen(program.command("train", recipe, "--out", out),
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        time.sleep(rng.uniform(0.05, 0.45) * seconds)
        process.kill()
        if process.wait() != -signal.SIGKILL:
            break  # it was quicker than that
        kills += 1
    assert kills >= KILLS // 2, "the run ended before it could be killed"
    program.run("train", recipe, "--out", out)


def interrupted_run(program, recipe, out, seconds):
    """SIGTERM finishes the step, saves and exits 0."""
    process = subprocess.Popen(program.command("train", recipe, "--out", out),
                               stdout=subprocess.PIPE, text=True)
    time.sleep(seconds / 2)
    process.send_signal(signal.SIGTERM)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 0 and "stopped after step" in output, output
    program.run("train", recipe, "--out", out)


def check(program, dtype):
    recipe = program.write_recipe(f"{dtype}.toml")
    recipe.write_text(f'dtype = "{dtype}"\n' + recipe.read_text())
    plain = program.scratch / f"{dtype}-plain"
    start = time.monotonic()
    program.run("--threads", 1, "train", recipe, "--out", plain)
    seconds = time.monotonic() - start

    program.run("--threads", 2, "train", recipe, "--out", program.scratch / f"{dtype}-threads")
    same_outcome(plain, program.scratch / f"{dtype}-threads")
    killed_run(program, recipe, program.scratch / f"{dtype}-killed", seconds)
    same_outcome(plain, program.scratch / f"{dtype}-killed")
    interrupted_run(program, recipe, program.scratch / f"{dtype}-interrupted", seconds)
    same_outcome(plain, program.scratch / f"{dtype}-interrupted")


def main():
    program = Program()
    program.pack_corpus()
    for dtype in ("f32", "bf16"):
        check(program, dtype)


main()
