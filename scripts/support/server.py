# SPDX-License-Identifier: GPL-2.0-only
"""Many command lines of weft with one start of the program (docs/reference/serve.md)."""

import json
import os
import pathlib
import select
import shutil
import tempfile


class Server:
    """A start of `weft serve`. `start(words)` starts weft with these words, on `ranks` MPI processes, with a pipe for
    standard output, as text, and gives the subprocess.Popen. Commands are run one at a time."""

    def __init__(self, start, ranks=1):
        self.runs = 0
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="weft-server-"))
        names = [self.folder / str(rank) for rank in range(ranks)]
        for name in names:
            os.mkfifo(name)
        self.process = start(["serve", str(self.folder)])
        # Open for reading as well, so that this does not wait for processes that may never come.
        self.pipes = [os.open(name, os.O_RDWR | os.O_CLOEXEC) for name in names]

    def run(self, words, folder, seconds=None):
        """`weft WORDS...` in a folder: exit code, standard output, standard error. If the program ends, it is its exit code.
        TimeoutError if the command takes longer than so many seconds."""
        self.runs += 1
        out, err = [self.folder / f"{self.runs}.{name}" for name in ("out", "err")]
        request = {"folder": str(folder), "words": [str(word) for word in words], "out": str(out), "err": str(err)}
        for pipe in self.pipes:
            os.write(pipe, json.dumps(request).encode() + b"\n")
        if not select.select([self.process.stdout], [], [], seconds)[0]:
            raise TimeoutError
        answer = self.process.stdout.readline()
        code = int(answer) if answer else self.process.wait()
        texts = [path.read_text() if path.exists() else "" for path in (out, err)]
        for path in (out, err):
            path.unlink(missing_ok=True)
        return code, *texts

    def close(self):
        """The program ends when it has read its pipes to the end; wait for it."""
        for pipe in self.pipes:
            os.close(pipe)
        self.pipes = []
        self.process.stdout.close()
        self.process.stdout = None  # for communicate()
        shutil.rmtree(self.folder, ignore_errors=True)
