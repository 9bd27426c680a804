"""A small model folder whose tokenizer has the marks of chat turns: the weights of a fixture, and a SentencePiece
model of bytes written here."""

import json
import shutil

UNK, BOS, EOS, START_OF_TURN, END_OF_TURN, FIRST_BYTE = 0, 1, 2, 3, 4, 5
CONTROL, USER_DEFINED, BYTE = 3, 4, 6  # kinds of pieces; 2: the unknown one


def varint(number):
    out = bytearray()
    while number >= 128:
        out.append(number % 128 + 128)
        number //= 128
    return bytes(out) + bytes([number])


def field(number, value):
    """A field of a protocol buffer: a number, or bytes."""
    if isinstance(value, int):
        return varint(number * 8) + varint(value)
    return varint(number * 8 + 2) + varint(len(value)) + value


def sentencepiece_model():
    pieces = [("<unk>", 2), ("<s>", CONTROL), ("</s>", CONTROL),
              ("<start_of_turn>", USER_DEFINED), ("<end_of_turn>", USER_DEFINED)]
    pieces += [(f"<0x{byte:02X}>", BYTE) for byte in range(256)]
    model = b"".join(field(1, field(1, text.encode()) + field(3, kind)) for text, kind in pieces)
    trainer = field(3, 2) + field(4, len(pieces)) + field(35, 1)  # bpe, byte fallback
    normalizer = field(1, b"identity") + field(3, 0) + field(4, 0) + field(5, 1)
    return model + field(2, trainer) + field(3, normalizer)


def make_chat_model(program, name="chat-model", tokenizer=None, **files):
    """A folder with a model to talk to; files: generation_config={...}, and what else there is to say."""
    folder = program.scratch / name
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(program.source / "tests/fixtures/native-a", folder)
    (folder / "tokenizer.model").write_bytes(tokenizer or sentencepiece_model())
    for file, value in files.items():
        (folder / f"{file}.json").write_text(json.dumps(value))
    return folder


def bias_for(character):
    """The option that makes the model write this character, and nothing else."""
    return ["--logit-bias", f"{FIRST_BYTE + ord(character)}=1000"]


def bias_token(token):
    return ["--logit-bias", f"{token}=1000"]
