"""Wrong usage, recipes, text, token stores and tokenizers: each is refused with one clear message that
names the place, and nothing is written."""

import gzip
import os
import random
import shutil
import struct
import subprocess

from support import RECIPE, Program

COMMANDS = ["train", "generate", "tokenizer", "tokenizer train", "tokenizer encode",
            "tokenizer decode", "pack", "parity", "inspect"]


def check_usage(program):
    """Bad usage exits with 2 and says what was wanted."""
    for arguments, said in (
            ([], "wanted one of train, generate, chat, tokenizer, pack, eval, parity, inspect, "
                 "convert, bench, got nothing"),
            (["trian"], 'got "trian"'),
            (["train"], "RECIPE is required"),
            (["tokenizer"], "wanted one of train, encode, decode"),
            (["tokenizer", "learn"], 'got "learn"'),
            (["train", "r.toml", "--fast"], "--fast"),
            (["generate", "--model", "m"], "--prompt or --prompts is required"),
            (["generate", "--model", "m", "--prompt", "p", "--max-tokens", "0"], "--max-tokens"),
            (["generate", "--model", "m", "--prompt", "p", "--temperature", "hot"], "--temperature"),
            (["generate", "--model", "m", "--prompt", "p", "--dtype", "f8"], "--dtype"),
            (["--threads", "0", "inspect", "byte"], "--threads")):
        program.refused(*arguments, said=[said, "--help"], status=2)


def check_help(program):
    for command in COMMANDS:
        text = program.run(*command.split(), "--help").stdout
        assert "Example: " in text and f"zaya {command.split()[0]}" in text, text
    assert all(command.split()[0] in program.run("--help").stdout for command in COMMANDS)


# ---- Recipes ----

def check_recipe_files(program):
    file = program.scratch / "bad.toml"
    good = RECIPE.format(data="d", max_steps=0, validate=100, checkpoint=7)
    noise = random.Random(5).randbytes(4096)
    for content, said in (
            (b"", "model.vocab_size: wanted at least 2, got nothing"),
            (noise, "wanted TOML"),
            (b"MZ\0\0" + noise, "wanted TOML"),
            (b"a = " + b"[" * 100_000, "wanted TOML"),
            (good.replace("[model]", "[model").encode(), ["line 6", "wanted TOML"]),
            (good.replace("seed = 7", "seed = 7\nsede = 8").encode(),
             ["bad.toml: sede: wanted one of name, seed,", "unknown key (line 4)"]),
            (good.replace("hidden_size = 32", 'hidden_size = "wide"', 1).encode(),
             'model.hidden_size: wanted an integer, got "wide" (line 8)'),
            (good.replace("sliding_window = 24", "sliding_window = 0").encode(),
             "sliding_window: wanted a positive number"),
            (good.replace("holdout_every = 10", "").encode(), "validation.every: wanted"),
            (good.replace('name = "long"', 'name = "short"').encode(), "phases[1].name"),
            (good.split("[[data]]")[0].encode(), "data: wanted something")):
        file.write_bytes(content)
        program.refused("train", file, "--dry-run", said=said)
    program.refused("train", program.scratch / "none.toml", said=["none.toml", "No such file"])
    program.refused("train", program.scratch, said="Is a directory")


def check_overrides(program, recipe):
    for assignment, said in (
            ("nonsense", "wanted path=value"),
            ("=", "wanted path=value"),
            ("phases[0]=3", "wanted path=value"),
            ("phases[9].steps=1", "wanted an index below 2, got 9"),
            ("model=3", "model: wanted a table, got 3 (from --set)"),
            ("optimiser.clip_norm=1", "optimiser: wanted one of"),
            ("name=", "name: wanted something"),
            ("seed=-1", "seed: wanted 0 to"),
            ("max_steps=1e99", "max_steps: wanted an integer"),
            ("dtype=fp8", "dtype: wanted auto, f32 or bf16"),
            ("optimizer.clip_norm=nan", "optimizer.clip_norm: wanted a finite number"),
            ("phases[0].seq_len=100", "phases[0].seq_len: wanted a multiple of 64"),
            ("phases[0].seq_len=8192", "phases[0].seq_len: wanted at most"),
            ("phases[0].batch_tokens=100", "phases[0].batch_tokens: wanted a multiple of seq_len"),
            ("phases[0].micro_batch_tokens=100", "micro_batch_tokens: wanted a multiple of seq_len"),
            ("phases[0].tokens=5", "phases[0].tokens: wanted one of tokens and steps, got both"),
            ("phases[0].mixture.news=1", "wanted names of data sources (text)"),
            ("model.num_key_value_heads=3", "num_key_value_heads: wanted a divisor"),
            ("model.num_experts=4096 model.hidden_size=1048576 model.num_hidden_layers=4096 "
             "model.moe_intermediate_size=1048576 model.sliding_layers=[]", "parameters")):
        sets = [word for part in assignment.split() for word in ("--set", part)]
        program.refused("train", recipe, "--dry-run", *sets, said=said)


# ---- Text, token stores and tokenizers ----

def check_packing(program):
    out = program.scratch / "packed"
    folder = program.scratch / "texts"
    folder.mkdir()
    text = (program.source / "data/quickstart/heldout.txt").read_bytes()[:50_000]
    zipped = gzip.compress(text)
    for name, content, said in (
            ("empty.txt", b"", "no documents"),
            ("separators.txt", b"%\n%\n%\n", "no documents"),
            ("field.jsonl", b'{"text": "a"}\n{"body": "b"}\n', "field.jsonl:2: text: wanted a string"),
            ("line.jsonl", b'{"text": "a"}\n{"text": \n', "line.jsonl:2: parse error"),
            ("number.jsonl", b'{"text": 3}\n', "text: wanted a string, got 3"),
            ("cut.txt.gz", zipped[:len(zipped) // 2], "truncated"),
            ("empty.txt.gz", b"", "truncated"),
            ("not.txt.gz", text, "wanted gzip data"),
            ("not.txt.zst", text, "wanted zstd data"),
            ("empty.txt.zst", b"", "truncated"),
            ("text.pdf", text, "wanted a name that ends in .txt or .jsonl")):
        (folder / name).write_bytes(content)
        program.refused("pack", "--tokenizer", "byte", "--separator", "%", "--input", folder / name,
                        "--out", out, said=[name, said])
        assert not list(program.scratch.glob("*packed*")), f"{name} left something behind"
    program.refused("pack", "--tokenizer", "byte", "--input", folder / "none.txt", "--out", out,
                    said=["none.txt", "No such file"])
    check_truncated_zstd(program, folder, text)


def check_truncated_zstd(program, folder, text):
    if shutil.which("zstd") is None:
        print("skipped: a truncated .zst (no zstd program here)")
        return
    whole = subprocess.run(["zstd", "-qc"], input=text, capture_output=True, check=True).stdout
    (folder / "cut.txt.zst").write_bytes(whole[:len(whole) // 2])
    program.refused("pack", "--tokenizer", "byte", "--input", folder / "cut.txt.zst", "--out",
                    program.scratch / "packed", said=["cut.txt.zst", "truncated"])


def check_packing_places(program):
    """A store goes where it can go; a failed one leaves the old one as it was."""
    text = program.scratch / "corpus.txt"
    pack = ["pack", "--tokenizer", "byte", "--input", text, "--out"]
    (program.scratch / "taken.bin").mkdir()
    program.refused(*pack, program.scratch / "taken", said=["taken.bin", "got a folder"])
    program.refused(*pack, f"{program.scratch}/", said="wanted a folder and a name")
    program.refused(*pack, "", said="wanted a folder and a name", cwd=program.scratch)
    program.refused(*pack, program.scratch / "nowhere/x", said="nowhere/x")
    program.refused(*pack, text / "x", said="Not a directory")
    before = [(program.scratch / name).read_bytes() for name in ("corpus.bin", "corpus.idx")]
    (program.scratch / "cut.txt.gz").write_bytes(gzip.compress(text.read_bytes())[:999])
    program.refused("pack", "--tokenizer", "byte", "--input", program.scratch / "cut.txt.gz",
                    "--out", program.scratch / "corpus", said="truncated")
    after = [(program.scratch / name).read_bytes() for name in ("corpus.bin", "corpus.idx")]
    assert before == after


def check_token_stores(program, recipe):
    prefix = program.scratch / "hostile"
    idx = (program.scratch / "corpus.idx").read_bytes()
    bin_ = (program.scratch / "corpus.bin").read_bytes()
    sequences, boundaries = struct.unpack_from("<QQ", idx, 18)

    def with_at(offset, form, value):
        changed = bytearray(idx)
        struct.pack_into(form, changed, offset, value)
        return bytes(changed)

    for new_idx, new_bin, said in (
            (b"", bin_, "truncated"),
            (idx[:33], bin_, "truncated"),
            (idx[:-1], bin_, "document indices take"),
            (idx, bin_[:-2], "but"),
            (idx, bin_ + b"\0\0", "hostile.bin: wanted"),
            (idx, b"", "but"),
            (b"PK" + idx[2:], bin_, "MMIDIDX"),
            (with_at(9, "<Q", 2), bin_, "wanted version 1"),
            (with_at(17, "<B", 7), bin_, "dtype code 7"),
            (with_at(18, "<Q", 2**64 - 1), bin_, "document indices take"),
            (with_at(18, "<QQ"[:2], 2**63 // 12), bin_, "document indices take"),
            (with_at(26, "<Q", 2**61 + boundaries), bin_, "document indices take"),
            (with_at(34, "<i", -5), bin_, "sequence 0: wanted a length"),
            (with_at(34, "<i", 2**31 - 1), bin_, "ends at byte"),
            (with_at(34 + 4 * sequences, "<q", 2**62), bin_, "sequence 0: wanted byte offset 0"),
            (with_at(len(idx) - 8, "<q", 2**62), bin_, "document index")):
        prefix.with_suffix(".idx").write_bytes(new_idx)
        prefix.with_suffix(".bin").write_bytes(new_bin)
        program.refused("inspect", prefix, said=["hostile", said])
    run = program.scratch / "not-begun"
    program.refused("train", recipe, "--out", run, "--set", f"data[0].path={prefix}",
                    said="hostile.idx: document index")
    prefix.with_suffix(".idx").write_bytes(idx)
    for suffix in (".bin", ".idx"):
        prefix.with_suffix(suffix).unlink()
        program.refused("train", recipe, "--out", run, "--set", f"data[0].path={prefix}",
                        said=["hostile" + suffix, "No such file"])
    assert not run.exists()


def pack_text(program, name, text):
    (program.scratch / f"{name}.txt").write_text(text)
    program.run("pack", "--tokenizer", "byte", "--separator", "%", "--input",
                program.scratch / f"{name}.txt", "--out", program.scratch / name)
    return program.scratch / name


def check_data_for_the_recipe(program, recipe):
    """Data that does not suit the recipe is refused before the first step."""
    run = program.scratch / "not-begun"

    def refused(said, *sets):
        words = [word for part in sets for word in ("--set", part)]
        program.refused("train", recipe, "--out", run, *words, said=said)
        assert not list(run.glob("step-*")) and not (run / "metrics.jsonl").exists()

    short = pack_text(program, "short", "a\n%\nb\n%\n" * 8)
    refused(["source text holds", "a window needs 65"], f"data[0].path={short}")
    one = pack_text(program, "one", "word " * 200)
    refused("source text: 0 tokens to validate on", f"data[0].path={one}")
    refused("model.vocab_size: wanted at least the tokenizer's 258 tokens, got 100",
            "model.vocab_size=100")
    refused(["none.model", "No such file"], f"tokenizer.path={program.scratch}/none.model")
    refused("wanted tokenizer.json, tokenizer.model or tokenizer.byte", f"tokenizer.path={program.scratch}")


def check_ids_beyond_the_vocabulary(program, recipe):
    """The message says which file and which token."""
    prefix = program.scratch / "beyond"
    ids = list((program.scratch / "corpus.bin").read_bytes())
    ids[1::128] = [9] * len(ids[1::128])  # high bytes: 9 * 256 and more
    prefix.with_suffix(".bin").write_bytes(bytes(ids))
    prefix.with_suffix(".idx").write_bytes((program.scratch / "corpus.idx").read_bytes())
    program.refused("train", recipe, "--out", program.scratch / "beyond-run", "--set",
                    f"data[0].path={prefix}", said=["beyond.bin: token ", "wanted an id of 0 to 257"])


def check_token_ids(program):
    for text, said in (("1 x", 'wanted token ids, got "x"'), ("258", "wanted 0 to 257, got 258"),
                       ("-1", "wanted 0 to 257, got -1"), ("99999999999", "wanted token ids"),
                       ('{"ids": [1, "x"]}', "ids[1]: wanted an integer"),
                       ('{"ids": ', "parse error"), ('{"id": [1]}', "ids: wanted an array")):
        program.refused("tokenizer", "decode", "--tokenizer", "byte", input=text, said=said)
    garbage = bytes(range(256)).decode("latin-1")
    ids = program.run("tokenizer", "encode", "--tokenizer", "byte", "--json", input=garbage).stdout
    text = program.run("tokenizer", "decode", "--tokenizer", "byte", input=ids).stdout
    assert text == garbage.replace("\r", "\n"), "bytes were changed on the way"  # Python's newlines


def check_tokenizer_models(program):
    model = program.scratch / "tok.model"
    text = program.scratch / "few.txt"
    text.write_text((program.scratch / "corpus.txt").read_text()[:5000])
    program.run("tokenizer", "train", "--input", text, "--vocab", 400, "--out", model)
    good = model.read_bytes()
    bad = program.scratch / "bad.model"
    for content, said in ((b"", "without pieces"), (b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\x7f", ""),
                          (good[:5], ""), (good[:len(good) - 3], ""), (b"text, not a model\n" * 9, ""),
                          (good.replace(b"<0x41>", b"<0xZZ>"), "byte piece")):
        bad.write_bytes(content)
        program.refused("tokenizer", "encode", "--tokenizer", bad, input="a", said=["bad.model", said])
    rng = random.Random(3)
    for _ in range(12):  # whatever a changed byte means: an answer or a message, and no crash
        at = rng.randrange(len(good))
        bad.write_bytes(good[:at] + bytes([rng.randrange(256)]) + good[at + 1:])
        result = subprocess.run(program.command("tokenizer", "encode", "--tokenizer", bad),
                                input=b"some text", capture_output=True, timeout=60)
        assert result.returncode in (0, 1), (at, result)
    for arguments, said in ((["--vocab", 200], "vocab"), (["--vocab", 300], "required_chars"),
                            (["--vocab", 10**6], "cannot learn 1000000 tokens")):
        program.refused("tokenizer", "train", "--input", text, *arguments, "--out",
                        program.scratch / "never.model", said=said)
    assert not list(program.scratch.glob("*never*"))


def main():
    os.environ["OMP_NUM_THREADS"] = "1"
    program = Program()
    program.pack_corpus(60_000)
    recipe = program.write_recipe(max_steps=3)
    check_usage(program)
    check_help(program)
    check_recipe_files(program)
    check_overrides(program, recipe)
    check_packing(program)
    check_packing_places(program)
    check_token_stores(program, recipe)
    check_data_for_the_recipe(program, recipe)
    check_ids_beyond_the_vocabulary(program, recipe)
    check_token_ids(program)
    check_tokenizer_models(program)


main()
