#!/usr/bin/env python3
"""Turn Debian's dict-jargon (the Jargon File 4.4.7) into data/quickstart/{train,heldout}.txt.

One entry is one document; documents are separated by a line holding only '%', as in fortune
files. Every 20th entry goes to heldout.txt. Usage: make_quickstart_corpus.py [OUTPUT_DIR]
"""

import gzip
import pathlib
import re
import sys
import unicodedata

DICT = "/usr/share/dictd/jargon.dict.dz"
INDEX = "/usr/share/dictd/jargon.index"
BASE64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
WRAP_COLUMN = 79
HELDOUT_EVERY = 20
INDENT = "    "
# Names of cartoons and figures that the text version of the file leaves where the picture was.
PICTURE = re.compile(r"\[(\d\d-\d\d-\d\d(-\d\d)?|crunchly[-\w]*|symbolics-|eat-flamin|"
                     r"gefingerpo|blivet|"
                     r"bugpic-col|ansi-c|fortran|glider|lisp|licensepla|cobol|richiethom)\]"
                     r"|Figure.1\..*|\(The (next|previous|first) cartoon in the Crunchly saga.*")
NO_SPACE_AFTER = tuple("{“‘([/^")
NO_SPACE_BEFORE = tuple("}”’)],.;`")


def decode(digits):
    value = 0
    for digit in digits:
        value = value * 64 + BASE64.index(digit)
    return value


def read_entries():
    """The entries in the order of the dictionary, without the notes about the database."""
    data = gzip.open(DICT).read()
    places = set()
    for line in open(INDEX, encoding="utf-8"):
        headword, offset, length = line.rstrip("\n").split("\t")
        if not headword.startswith("00database") and not headword.startswith("00-database"):
            places.add((decode(offset), decode(length)))
    for offset, length in sorted(places):
        entry = data[offset:offset + length].decode("utf-8").strip("\n")
        if entry and not entry.startswith("00-database"):
            yield entry


def join_wrapped(lines):
    """Undo a hard wrap. The wrapper also broke lines beside brackets and quotes."""
    text = ""
    for line in (line.strip() for line in lines):
        tight = text.endswith(NO_SPACE_AFTER) or line.startswith(NO_SPACE_BEFORE)
        text += line if tight or not text else " " + line
    return re.sub(r" +", " ", text)


def columns(text):
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def is_prose(lines):
    """Whether a block of lines was filled by a word wrapper (or is a single line)."""
    for line, following in zip(lines, lines[1:]):
        tight = line.endswith(NO_SPACE_AFTER) or following.strip().startswith(NO_SPACE_BEFORE)
        if not tight and columns(line) + 1 + columns(following.split()[0]) <= WRAP_COLUMN:
            return False
    return not any("\xa0" in line or "  " in line.strip() for line in lines)


def unbox(lines):
    """A table drawn with box characters becomes one line a row, its cells separated by ' | '."""
    rows, cells = [], []
    for line in lines + ["├"]:
        line = line.strip()
        if line[0] in "┌├└":
            if cells:
                row = " | ".join(join_wrapped(cell) for cell in cells)
                rows.append(re.sub(r"(\w|}) ([;.,])(?= |$)", r"\1\2", row))
            cells = []
            continue
        parts = line.strip("│").split("│")
        cells = cells or [[] for _ in parts]
        for cell, part in zip(cells, parts):
            if part.strip():
                cell.append(part)
    return rows


def clean_block(lines):
    if lines[0].strip().startswith("┌"):
        return "\n".join(unbox(lines))
    if is_prose(lines):
        return join_wrapped(lines).replace("\xa0", " ")
    # Code, verse, drawings and tables keep their lines and what indentation is their own.
    kept = [line.replace("\xa0", " ").rstrip() for line in lines]
    indent = min(len(line) - len(line.lstrip()) for line in kept)
    return "\n".join(line[indent:] for line in kept)


def blocks_of(lines):
    block = []
    for line in lines + [""]:
        if block and line and not line.startswith(INDENT):  # the wrapper broke a verbatim line
            block[-1] += " " + line
        elif line.strip():
            block.append(line)
        elif block:
            yield block
            block = []


def clean(entry):
    """Headword, then pronunciation and part of speech, an empty line, then the paragraphs."""
    lines = entry.replace("\xad", "").split("\n")
    kind = re.sub(r"^//,? ?", "", lines[1].strip()) if len(lines) > 1 else ""
    head = lines[0].strip() + ("\n" + kind if kind else "")
    body = []
    for block in blocks_of(lines[2:]):
        text = clean_block(block)
        if not PICTURE.fullmatch(text):
            body.append(text)
    return "\n\n".join([head] + body)


def write(path, documents):
    path.write_text("\n%\n".join(documents) + "\n", encoding="utf-8")
    print(f"{path}: {len(documents)} entries, {path.stat().st_size} bytes")


def main():
    here = pathlib.Path(__file__).resolve().parent.parent / "data" / "quickstart"
    out = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else here
    out.mkdir(parents=True, exist_ok=True)
    documents = [clean(entry) for entry in read_entries()]
    if any("\n%\n" in f"\n{document}\n" for document in documents):
        sys.exit("an entry holds a line of only '%': choose another separator")
    heldout = documents[HELDOUT_EVERY - 1::HELDOUT_EVERY]
    train = [d for i, d in enumerate(documents, 1) if i % HELDOUT_EVERY]
    write(out / "train.txt", train)
    write(out / "heldout.txt", heldout)


if __name__ == "__main__":
    main()
