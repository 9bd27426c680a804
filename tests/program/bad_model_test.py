"""Damaged, hostile and unsuitable models: each is refused with one clear message that names the place;
odd but right requests are served."""

import json
import os
import shutil
import struct
import subprocess

from support import Program


def tensor_file(header, data=b"", length=None):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def entry(shape, begin, end, dtype="F32"):
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def check_safetensors(program):
    file = program.scratch / "hostile.safetensors"
    twice = b'{"a":' + json.dumps(entry([1], 0, 4)).encode() + b'}'
    for content, said in (
            (b"", "wanted a safetensors file"), (b"\1\0\0", "wanted a safetensors file"),
            (tensor_file({}, length=2**64 - 1), "header length"),
            (tensor_file({}, length=3), "header length"), (tensor_file(b"{,}"), "header"),
            (tensor_file(b"[" * 50_000), "nested levels"), (tensor_file(b"[]"), "wanted an object"),
            (tensor_file({"a": entry([1], 0, 8)}, b"1234"), "data_offsets"),
            (tensor_file({"a": entry([1], -4, 0)}, b"1234"), "data_offsets"),
            (tensor_file({"a": entry([1], 4, 0)}, b"1234"), "data_offsets"),
            (tensor_file({"a": entry([2], 0, 4)}, b"1234"), "the 8 bytes"),
            (tensor_file({"a": entry([2**32, 2**32], 0, 4)}, b"1234"), "fewer than 2^63 bytes"),
            (tensor_file({"a": entry([-1], 0, 4)}, b"1234"), "shape[0]"),
            (tensor_file({"a": entry([1], 0, 4, "F33")}, b"1234"), "dtype"),
            (tensor_file({"a": entry([1], 0, 4), "b": entry([1], 0, 4)}, b"1234"), "overlaps"),
            (tensor_file({"a": entry([1], 4, 8)}, b"12345678"), "belong to no tensor"),
            (tensor_file(twice[:-1] + b"," + twice[1:], b"1234"), "twice")):
        file.write_bytes(content)
        program.refused("inspect", file, said=["hostile.safetensors", said])


def check_models(program):
    """A model folder with something missing or wrong; generate and parity say what."""
    fixture = program.source / "tests/fixtures/native-a"
    model = program.scratch / "model"
    ask = ["generate", "--model", model, "--tokenizer", "byte", "--prompt", "x", "--max-tokens", 3]
    weights = (fixture / "model.safetensors").read_bytes()
    config = json.loads((fixture / "config.json").read_text())

    def write(new_config=config, new_weights=weights):
        shutil.rmtree(model, ignore_errors=True)
        model.mkdir()
        text = new_config if isinstance(new_config, str) else json.dumps(new_config)
        (model / "config.json").write_text(text)
        (model / "model.safetensors").write_bytes(new_weights)

    for new_config, said in (
            ("", "parse error"), ("{", "parse error"), ("[]", "wanted an object"),
            ("{}", "vocab_size"), ({**config, "hidden_size": "64"}, "hidden_size: wanted"),
            ({**config, "hidden_size": -1}, "hidden_size: wanted"),
            ({**config, "num_hidden_layers": 2**30, "layer_types": None},
             "num_hidden_layers: wanted 1 to"),
            ({**config, "hidden_size": config["hidden_size"] * 2}, "wanted shape"),
            ({**config, "model_type": "llama"}, 'model_type: wanted "zaya"'),
            ({**config, "layer_types": ["hybrid"]}, "layer_types: wanted")):
        write(new_config)
        program.refused(*ask, said=["config.json", said])
    write(new_weights=weights[:-1])
    program.refused(*ask, said="model.safetensors")
    program.refused("parity", model, fixture / "reference.safetensors", said="model.safetensors")
    write()
    program.refused(*ask[:3], "--prompt", "x", said="wanted tokenizer.json, tokenizer.model or tokenizer.byte")
    program.refused("parity", model, program.scratch / "none.safetensors", said="none.safetensors")
    (model / "model.safetensors").unlink()
    program.refused(*ask, said="wanted model.safetensors")
    index = {"weight_map": {"model.embed_tokens.weight": "../model.safetensors"}}
    (model / "model.safetensors.index.json").write_text(json.dumps(index))
    program.refused(*ask, said="a file name without folders")
    (model / "config.json").unlink()
    program.refused(*ask, said="found neither config.json")
    program.refused(*ask[:2], program.scratch / "gone", "--prompt", "x", said="no such file")


def check_weights_that_are_not_numbers(program):
    fixture = program.source / "tests/fixtures/native-a"
    model = program.scratch / "nan"
    shutil.copytree(fixture, model)
    good = (fixture / "model.safetensors").read_bytes()
    length, = struct.unpack_from("<Q", good)
    header = json.loads(good[8:8 + length])
    name = next(name for name in header if "balancing_biases" in name)
    begin = 8 + length + header[name]["data_offsets"][0]
    for value in (float("nan"), float("inf")):
        (model / "model.safetensors").write_bytes(
            good[:begin + 4] + struct.pack("<f", value) + good[begin + 8:])
        program.refused("generate", "--model", model, "--tokenizer", "byte", "--prompt", "x",
                        said=[name, "element 1 is", "wanted finite weights"])


def check_generation(program):
    """Odd but right requests are served, and wrong ones refused."""
    model = program.source / "tests/fixtures/native-a"
    ask = ["generate", "--model", model, "--tokenizer", "byte"]
    answer = json.loads(program.run(*ask, "--prompt", "", "--max-tokens", 4, "--json").stdout)
    assert answer["prompt_tokens"] == 1 and answer["new_tokens"] == 4, answer  # bos
    prompt = os.fsdecode(b"\xff\xc3(")  # no UTF-8
    answer = json.loads(program.run(*ask, "--prompt", prompt, "--max-tokens", 4, "--json").stdout)
    assert answer["prompt_tokens"] == 4, answer
    # Memory follows the text: this would be many GiB at once.
    command = program.command(*ask, "--prompt", "x", "--max-tokens", 1 << 24)
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout.read(3)
    process.stdout.close()  # as head does
    error = process.stderr.read()
    assert process.wait(60) == -13 and error == b"", (process.returncode, error)  # SIGPIPE
    for arguments, said in ((["--temperature", -1], "--temperature: wanted 0 or more"),
                            (["--top-p", 0], "--top-p: wanted more than 0"),
                            (["--top-k", -1], "--top-k: wanted 0")):
        program.refused(*ask, "--prompt", "x", *arguments, said=said)
    program.refused("generate", "--model", program.source / "tests/fixtures/native-sliding",
                    "--tokenizer", "byte", "--prompt", "x",
                    said="the tokenizer has 258 tokens, the model 257: they do not belong together")


def check_output(program):
    """What cannot be printed is not a success."""
    with open("/dev/full", "wb") as full:
        result = subprocess.run(program.command("inspect", "byte"), stdout=full,
                                stderr=subprocess.PIPE)
    assert result.returncode == 1 and b"standard output" in result.stderr, result


def main():
    os.environ["OMP_NUM_THREADS"] = "1"
    program = Program()
    check_safetensors(program)
    check_models(program)
    check_weights_that_are_not_numbers(program)
    check_generation(program)
    check_output(program)


main()
