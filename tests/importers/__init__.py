# SPDX-License-Identifier: GPL-2.0-only
"""What tests/cli/import_conformance_test.py asks of each format of `weft import`: a module NAME.py with

sample(folder)      writes an input by the format's own rules; gives the words after `weft import FORMAT`
counts(folder)      {"ranks": .., "operations": {kind: number}, "bytes": {kind: bytes}} by a count of its own
damaged(folder)     (what, words) of inputs that are to be refused

