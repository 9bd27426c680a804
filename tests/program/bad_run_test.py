"""Runs that meet trouble: folders they cannot write, full disks, other processes, signals, readers that
leave, and steps that are not finite. None loses what it had."""

import contextlib
import filecmp
import json
import math
import os
import random
import resource
import shutil
import signal
import struct
import subprocess
import time

from support import Program, checkpoints, newest_checkpoint, train

# Steps that a background run will not reach before it is stopped.
MANY = ["--set", "phases[1].steps=1000000", "--set", "max_steps=1000000"]


def wait_until(condition, what):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(0.002)


def start(program, *arguments, **options):
    options = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, **options}
    return subprocess.Popen(program.command("train", *arguments), **options)


def stop(process, number=signal.SIGINT):
    process.send_signal(number)
    _, error = process.communicate(timeout=60)
    return process.returncode, error


@contextlib.contextmanager
def disk(program, size, *options):
    """A small file system of its own; None where this user may not mount one."""
    folder = program.scratch / "disk"
    folder.mkdir(exist_ok=True)
    command = ["mount", "-t", "tmpfs", "-o", ",".join([f"size={size}", *options]), "zaya", folder]
    if subprocess.run(command, capture_output=True).returncode != 0:
        print(f"skipped: cannot mount a tmpfs of {size}")
        yield None
        return
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


# ---- Places ----

def check_folders_that_cannot_be_written(program, recipe):
    file = program.scratch / "corpus.txt"
    for out in (file, file / "run", "/proc/zaya-run"):
        program.refused("train", recipe, "--out", out, said=["cannot create the folder", str(out)])
    with disk(program, "1m", "ro") as folder:
        if folder:
            program.refused("train", recipe, "--out", folder / "run", said="Read-only file system")
            program.refused("train", recipe, "--out", folder, said="Read-only file system")


def check_small_disk(program, recipe):
    """Too small for the checkpoints to come: refused before the first step."""
    # A checkpoint takes 0.6 MB; a long run holds three while it writes.
    for size, steps in (("512k", []), ("1m", MANY)):
        with disk(program, size) as folder:
            if not folder:
                return
            program.refused("train", recipe, "--out", folder / "run", *steps, said="no space left on")
            assert not checkpoints(folder / "run")
            assert not (folder / "run/metrics.jsonl").exists()


def fill(folder, left):
    status = os.statvfs(folder)
    with open(folder / "filler", "ab") as filler, contextlib.suppress(OSError):
        filler.write(bytes(max(0, status.f_bavail * status.f_frsize - left)))


def check_full_disk(program, recipe):
    """A disk that fills up during the run: the run ends with a message, its checkpoints stay whole,
    and with space again it goes on from the newest."""
    with disk(program, "6m") as folder:
        if not folder:
            return
        run = folder / "run"
        process = start(program, recipe, "--out", run, *MANY)
        wait_until(lambda: run.exists() and len(checkpoints(run)) >= 2, "two checkpoints")
        while process.poll() is None:
            fill(folder, 1 << 16)
            time.sleep(0.002)
        error = process.stderr.read().decode()
        assert process.returncode == 1 and error.startswith("zaya: "), (process.returncode, error)
        assert "no space left on" in error or "No space left" in error, error
        assert len(error.splitlines()) == 1, error
        program.run("inspect", run)
        newest = newest_checkpoint(run)
        program.run("generate", "--model", run, "--prompt", "a", "--max-tokens", 2)
        (folder / "filler").unlink()
        last = int(newest.name[5:]) + 3
        output = program.run("train", recipe, "--out", run, *MANY[:3], f"max_steps={last}").stdout
        assert f"resuming after step {last - 3} from" in output, output
        assert newest_checkpoint(run).name == f"step-{last:08}"
        program.run("inspect", run)


def check_file_size_limit(program, recipe):
    """A quota on file sizes is a message too, and not a signal."""
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
    run = program.scratch / "limited"
    program.refused("train", recipe, "--out", run, preexec_fn=limit, said="File too large")
    assert not checkpoints(run)


def check_two_processes(program, recipe):
    run = program.scratch / "shared"
    process = start(program, recipe, "--out", run, *MANY)
    wait_until(lambda: (run / "metrics.jsonl").exists(), "the first run")
    program.refused("train", recipe, "--out", run, said="another process is training into this folder")
    assert stop(process) == (0, b"")
    program.run("inspect", run)


def check_closed_streams(program, recipe):
    """A run without standard streams prints nowhere, in particular not into its files."""
    def close():
        for fd in range(3):
            os.close(fd)
    run = program.scratch / "closed"
    subprocess.run(program.command("train", recipe, "--out", run), preexec_fn=close, check=True,
                   timeout=60)
    for line in (run / "metrics.jsonl").read_text().splitlines():
        json.loads(line)
    program.run("inspect", run)


# ---- Signals ----

def check_signals(program, recipe):
    """A stop signal at any moment after the start: exit 0, and a whole checkpoint."""
    rng = random.Random(17)
    for number in (signal.SIGINT, signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        run = program.scratch / "signalled"
        process = start(program, recipe, "--out", run, *MANY)
        wait_until(lambda: (run / ".lock").exists(), "the run")
        time.sleep(rng.uniform(0, 0.3))
        assert stop(process, number) == (0, b""), number
        assert not list(run.glob("*.partial"))
        program.run("inspect", run)
        shutil.rmtree(run)


def check_reader_that_left(program, recipe):
    """Ctrl-C under "| tee log" ends tee first; the checkpoint is still written."""
    run = program.scratch / "tee"
    process = start(program, recipe, "--out", run, *MANY, "--set", "metrics.progress_seconds=0",
                    stdout=subprocess.PIPE)
    wait_until(lambda: (run / "metrics.jsonl").exists(), "the run")
    process.stdout.close()
    time.sleep(0.1)
    process.stdout = None
    assert stop(process) == (0, b"")
    program.run("inspect", run)


# ---- Steps that are not finite ----

def entries_of(run):
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


def weights_of(checkpoint):
    content = (checkpoint / "model.safetensors").read_bytes()
    length, = struct.unpack_from("<Q", content)
    return struct.unpack(f"<{(len(content) - 8 - length) // 4}f", content[8 + length:])


def check_skipped(run, first, reason):
    """Every step from the first on is skipped, counted, and logged with the samples that fed it."""
    steps = [entry for entry in entries_of(run) if "grad_norm" in entry]
    assert [s["skipped_steps"] for s in steps] == [max(0, s["step"] - first + 1) for s in steps]
    for step in steps:
        assert ("skipped" in step) == (step["step"] >= first), step
        if step["step"] >= first:
            assert reason in step["skipped"], step
            # 256 tokens a step in rows of 64: four samples, numbered through the phase.
            begin = 4 * (step["step"] - 1)
            assert step["skipped_samples"] == list(range(begin, begin + 4)), step
    return len([s for s in steps if "skipped" in s])


def check_steps_that_are_not_finite(program, recipe):
    run = program.scratch / "nan"
    rates = ["--set", "optimizer.embedding_learning_rate=1e30", "--set", "phases[0].ramp_tokens=0",
             "--set", "phases[0].batch_tokens_start=0", "--set", "phases[0].batch_tokens=256"]
    output = program.run(*train(recipe, run, *rates)).stdout
    assert check_skipped(run, 2, "the gradient norm is") == 5
    assert "5 steps were skipped: see" in output, output
    assert output.count("step 6 skipped: ") == 1, output
    assert all(map(math.isfinite, weights_of(newest_checkpoint(run))))
    # A resumed run goes on counting.
    program.run(*train(recipe, run, *rates, last=8))
    assert check_skipped(run, 2, "the gradient norm is") == 7


def check_spikes(program, recipe):
    """A norm over the factor leaves weights and running mean as they were."""
    run = program.scratch / "spikes"
    sets = ["--set", "optimizer.spike_factor=0.1", "--set", "optimizer.spike_warmup_steps=3",
            "--set", "phases[0].ramp_tokens=0", "--set", "phases[0].batch_tokens_start=0",
            "--set", "phases[0].batch_tokens=256", "--set", "checkpoint.every=3"]
    program.run(*train(recipe, run, *sets))
    assert check_skipped(run, 4, "is more than 0.1 times its running mean") == 3
    weights = [run / name / "model.safetensors" for name in ("step-00000003", "step-00000006")]
    assert filecmp.cmp(*weights, shallow=False), "a skipped step moved the weights"


def main():
    os.environ["OMP_NUM_THREADS"] = "1"
    program = Program()
    program.pack_corpus(30_000)
    recipe = program.write_recipe(max_steps=3)
    check_folders_that_cannot_be_written(program, recipe)
    check_small_disk(program, recipe)
    check_full_disk(program, recipe)
    check_file_size_limit(program, recipe)
    check_two_processes(program, recipe)
    check_closed_streams(program, recipe)
    check_signals(program, recipe)
    check_reader_that_left(program, recipe)
    check_steps_that_are_not_finite(program, recipe)
    check_spikes(program, recipe)


main()
