"""zaya convert: both layouts and integer weights, there and back; and what it refuses to do."""

import json
import shutil
import struct
import subprocess
import time

from support import Program

MODELS = ("original-layout", "original-scalars", "native-a", "native-sliding")


def tensors(folder):
    """Every tensor of a folder's files: its type, shape and bytes."""
    found = {}
    for file in folder.glob("*.safetensors"):
        content = file.read_bytes()
        length, = struct.unpack_from("<Q", content)
        for name, entry in json.loads(content[8:8 + length]).items():
            if name != "__metadata__":
                begin, end = (8 + length + offset for offset in entry["data_offsets"])
                found[name] = (entry["dtype"], entry["shape"], content[begin:end])
    return found


def inspect(program, folder):
    return json.loads(program.run("inspect", folder, "--json").stdout)


def fixture(program, model):
    """A copy of a fixture without its reference tensors."""
    folder = program.scratch / model
    folder.mkdir()
    for name in ("config.json", "model.safetensors"):
        shutil.copy(program.source / "tests/fixtures" / model / name, folder)
    return folder


def check_there_and_back(program, folder):
    model = folder.name
    there, back = program.scratch / (model + "-there"), program.scratch / (model + "-back")
    original = model.startswith("original")
    (folder / "tokenizer_config.json").write_text("{}")
    program.run("convert", folder, there, "--to", "hf" if original else "original")
    program.run("convert", there, back, "--to", "original" if original else "hf")
    assert tensors(back) == tensors(folder), model
    before, after = inspect(program, folder), inspect(program, back)
    assert before["geometry"] == after["geometry"] == inspect(program, there)["geometry"], model
    assert before["layout"] == after["layout"] == ("original" if original else "current"), model
    assert (back / "tokenizer_config.json").read_text() == "{}"
    reference = program.source / "tests/fixtures" / model / "reference.safetensors"
    program.run("parity", back, reference)
    if model != "original-layout":
        # Where the reference has gradients they bear the current layout's names, as ours do.
        program.run("parity", there, reference)


def check_codes(program, folder):
    for bits, worst in ((8, 0.1), (4, 1.0)):
        out = program.scratch / f"{folder.name}-int{bits}"
        summary = json.loads(program.run("convert", folder, out, "--to", f"int{bits}",
                                         "--json").stdout)
        assert summary["bytes"] < 0.6 * summary["bytes_before"], summary
        assert summary["to"] == f"current layout, int{bits}", summary
        held = inspect(program, out)
        assert held["whole"] and held["quantized_bits"] == bits, held
        assert held["parameters"] == inspect(program, folder)["parameters"]
        reference = program.source / "tests/fixtures" / folder.name / "reference.safetensors"
        report = json.loads(program.run("parity", out, reference, "--json", status=3).stdout)
        errors = {row["name"]: row["relative_error"] for row in report["tensors"]}
        assert errors["logits"] < worst, errors


def check_shards(program, folder):
    out, back = program.scratch / "shards", program.scratch / "unsharded"
    summary = json.loads(program.run("convert", folder, out, "--to", "hf", "--shard-size", "200KB",
                                     "--json").stdout)
    assert len(summary["files"]) > 3, summary
    index = json.loads((out / "model.safetensors.index.json").read_text())
    assert set(index["weight_map"].values()) == set(summary["files"])
    assert set(index["weight_map"]) == set(tensors(out))
    program.run("convert", out, back, "--to", "original")
    assert tensors(back) == tensors(folder)


def check_refusals(program, folder):
    out = program.scratch / "full"
    out.mkdir()
    (out / "mine").write_text("x")
    ask = ["convert", folder, out, "--to", "hf"]
    program.refused(*ask, said=["full: wanted a new or an empty folder", "--force"])
    assert [path.name for path in out.iterdir()] == ["mine"]
    program.run(*ask, "--force")
    assert sorted(path.name for path in out.iterdir()) == [
        "config.json", "model.safetensors", "tokenizer_config.json"]
    program.refused("convert", folder, folder, "--to", "hf", "--force",
                    said="wanted another folder than the one that holds the model itself")
    program.refused("convert", folder, out / "config.json", "--to", "hf", said="wanted a folder")
    program.refused("convert", program.scratch / "none", program.scratch / "x", "--to", "hf",
                    said="no such file")
    program.run("convert", folder, program.scratch / "x", "--to", "gguf", status=2)
    assert "Example: zaya convert" in program.run("convert", "--help").stdout
    assert not (program.scratch / "x").exists()


def check_kill(program, folder):
    """Whenever it is killed, OUT is not there or whole, and the next attempt succeeds."""
    out = program.scratch / "killed"
    for attempt in range(8):
        process = subprocess.Popen(program.command("convert", folder, out, "--to", "hf"),
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(0.004 * attempt)
        process.kill()
        process.wait()
        if out.exists():
            assert inspect(program, out)["whole"]
            shutil.rmtree(out)
    program.run("convert", folder, out, "--to", "hf")
    assert inspect(program, out)["whole"]
    assert not out.with_name("killed.partial").exists()


if __name__ == "__main__":
    zaya = Program()
    folders = [fixture(zaya, model) for model in MODELS]
    for each in folders:
        check_there_and_back(zaya, each)
    for each in folders[:3]:
        check_codes(zaya, each)
    check_shards(zaya, folders[0])
    check_refusals(zaya, folders[0])
    check_kill(zaya, folders[0])
