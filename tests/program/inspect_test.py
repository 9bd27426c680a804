"""zaya inspect: it names what each kind of file and folder holds, and says when one is damaged."""

import json

from support import Program, newest_checkpoint


def inspect(program, path, status=0, *options):
    return json.loads(program.run("inspect", path, "--json", *options, status=status).stdout)


def check_model(program):
    model = inspect(program, program.source / "tests/fixtures/native-a")
    assert model["kind"] == "model" and model["whole"], model
    assert model["config"]["model_type"] == "zaya"
    assert model["parameters"] == sum(t["bytes"] // 4 for t in model["tensors"])
    weights = inspect(program, program.source / "tests/fixtures/native-a/model.safetensors")
    assert weights["tensors"] == model["tensors"]


def check_data(program):
    corpus = program.pack_corpus()
    for path in (corpus, corpus.with_suffix(".idx"), corpus.with_suffix(".bin")):
        store = inspect(program, path)
        assert store["kind"] == "token store" and store["dtype"] == "U16", store
        assert 2 * store["tokens"] == corpus.with_suffix(".bin").stat().st_size
        assert 0 < store["shortest_document"] < store["longest_document"]
    assert inspect(program, "byte")["vocab_size"] == 258


def check_run(program):
    run = program.scratch / "run"
    recipe = program.write_recipe(max_steps=8, checkpoint=4)
    program.run("train", recipe, "--out", run)
    listed = inspect(program, run)["checkpoints"]
    assert [c["step"] for c in listed] == [8, 4] and all(c["verified"] for c in listed), listed
    checkpoint = newest_checkpoint(run)
    held = inspect(program, checkpoint)
    assert held["step"] == 8 and held["state"]["step"] == 8 and held["verified"]
    assert held["model"]["whole"] and held["model"]["tokenizer"]["name"] == "byte"
    return run, checkpoint


def check_damage(program, run, checkpoint):
    weights = checkpoint / "model.safetensors"
    good = weights.read_bytes()
    weights.write_bytes(good[:-1] + bytes([good[-1] ^ 1]))
    held = inspect(program, checkpoint, 3)
    assert not held["verified"] and "model.safetensors" in held["damage"], held
    listed = inspect(program, run, 3)["checkpoints"]
    assert [c["verified"] for c in listed] == [False, True], listed
    inspect(program, checkpoint, 0, "--quick")  # does not read the weights
    weights.write_bytes(good)
    inspect(program, checkpoint)


def check_refusals(program):
    for path, said in (("none", "no such file"), (__file__, "another kind of file"),
                       (program.source, "wanted a checkpoint")):
        error = program.run("inspect", path, status=1).stderr
        assert said in error and len(error.splitlines()) == 1, error


if __name__ == "__main__":
    zaya = Program()
    check_model(zaya)
    check_data(zaya)
    check_damage(zaya, *check_run(zaya))
    check_refusals(zaya)
