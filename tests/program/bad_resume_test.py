"""Resuming where something has changed or is damaged: the run goes on as if nothing had been, or refuses
with a message and changes nothing."""

import filecmp
import os
import shutil

from support import Program, checkpoints, train


def small_run(program, recipe, name):
    run = program.scratch / name
    program.run("train", recipe, "--out", run, "--set", "max_steps=4", "--set", "checkpoint.every=2")
    assert checkpoints(run) == ["step-00000002", "step-00000004"]
    return run


def check_changed_recipe(program, recipe):
    run = small_run(program, recipe, "changed")
    message = program.refused(*train(recipe, run, "--set", "optimizer.clip_norm=2", "--set", "seed=8"),
                              said=["step-00000004: the recipe has changed", "seed: 7 became 8",
                                    "optimizer.clip_norm: 1.0 became 2.0", "another --out"])
    assert len(message.splitlines()) == 4, message
    assert checkpoints(run) == ["step-00000002", "step-00000004"]
    # What moves no number of the run may change.
    program.run(*train(recipe, run, "--set", "checkpoint.keep=1", "--set", "validation.every=5"))
    assert checkpoints(run) == ["step-00000006"]


def check_changed_data(program, recipe):
    """Other text, more text and another tokenizer under the same names are noticed."""
    corpus = program.scratch / "corpus.bin"
    run = small_run(program, recipe, "data")
    good = corpus.read_bytes()
    at = len(good) // 4 * 2
    corpus.write_bytes(good[:at] + bytes([good[at] ^ 1]) + good[at + 1:])  # the same length
    program.refused(*train(recipe, run), said=["step-00000004", "the token stores have changed"])
    corpus.write_bytes(good)
    kept = shutil.copytree(run, program.scratch / "kept")
    text = program.scratch / "corpus.txt"
    program.run("pack", "--tokenizer", "byte", "--separator", "%", "--input", text, text, "--out",
                program.scratch / "corpus")
    program.refused(*train(recipe, run), said="the token stores have changed")
    program.pack_corpus(30_000)
    assert corpus.read_bytes() == good
    assert not filecmp.dircmp(run, kept).diff_files
    program.run(*train(recipe, run))


def damage(checkpoint, name):
    path = checkpoint / name
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 4
    path.write_bytes(content)


def check_damaged_checkpoints(program, recipe):
    """The newest whole one is taken, with a word about those passed over; none whole is an error."""
    run = small_run(program, recipe, "damaged")
    whole = shutil.copytree(run, program.scratch / "whole")
    program.run(*train(recipe, whole))
    for name in ("model.safetensors", "optimizer.safetensors", "manifest.json"):
        copy = shutil.copytree(run, program.scratch / f"damaged-{name}")
        damage(copy / "step-00000004", name)
        output = program.run(*train(recipe, copy)).stdout
        assert "passed over a damaged checkpoint" in output and name in output, output
        assert (copy / "step-00000004.damaged").is_dir()
        assert "resuming after step 2 from" in output, output
        program.run("inspect", copy)
        for file in ("model.safetensors", "optimizer.safetensors"):  # as if nothing had been
            assert filecmp.cmp(copy / "step-00000006" / file, whole / "step-00000006" / file, False)
    (run / "step-00000004/optimizer.safetensors").unlink()
    weights = run / "step-00000002/model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])
    program.refused(*train(recipe, run),
                    said=["none of its checkpoints is whole", "optimizer.safetensors", "1000"])
    program.refused("generate", "--model", run, "--prompt", "x", said="nor a whole checkpoint")
    program.run("inspect", run, status=3)
    assert checkpoints(run) == ["step-00000002", "step-00000004"]


def check_partial_checkpoints(program, recipe):
    """What a killed save left is no checkpoint."""
    run = program.scratch / "partial"
    shutil.copytree(small_run(program, recipe, "unkilled"), run)
    (run / "step-00000004").rename(run / "step-00000004.partial")
    (run / "step-00000009").mkdir()
    shutil.copy(run / "step-00000002/model.safetensors", run / "step-00000009")
    output = program.run(*train(recipe, run)).stdout
    assert "resuming after step 2 from" in output, output
    assert "step-00000004.partial" not in checkpoints(run)


def check_resume_options(program, recipe):
    run = small_run(program, recipe, "options")
    program.refused(*train(recipe, run, "--resume", "never"),
                    said=["holds checkpoints up to step 4", "another --out"])
    for wrong in ("sometimes", run, program.scratch / "none"):
        program.refused(*train(recipe, program.scratch / "other", "--resume", wrong),
                        said="--resume: wanted auto, never or a checkpoint's folder")
    program.refused(*train(recipe, run, "--resume", run / "step-00000002"), said="newer than the one")
    other = program.scratch / "branch"
    output = program.run(*train(recipe, other, "--resume", run / "step-00000002")).stdout
    assert "resuming after step 2 from" in output and checkpoints(other)[-1] == "step-00000006"
    damage(run / "step-00000004", "model.safetensors")
    program.refused(*train(recipe, program.scratch / "third", "--resume", run / "step-00000004"),
                    said="model.safetensors")


def main():
    os.environ["OMP_NUM_THREADS"] = "1"
    program = Program()
    program.pack_corpus(30_000)
    recipe = program.write_recipe(max_steps=3)
    check_changed_recipe(program, recipe)
    check_changed_data(program, recipe)
    check_damaged_checkpoints(program, recipe)
    check_partial_checkpoints(program, recipe)
    check_resume_options(program, recipe)


main()
