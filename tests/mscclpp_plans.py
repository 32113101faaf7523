# SPDX-License-Identifier: GPL-2.0-only
"""Execution plans of MSCCL++ for tests, in the form that its Python language writes (github.com/microsoft/mscclpp
python/mscclpp/language; test/execution-files)."""


def plan(collective, gpus, inplace=False, protocol="Simple"):
    return {"name": f"{collective} of {len(gpus)}", "collective": collective, "protocol": protocol, "inplace": inplace,
            "reuse_resources": False, "gpus": gpus, "num_threads_per_block": 1024, "use_double_scratch_buffer": False,
            "buffer_alignment": 16, "min_message_size": 0, "max_message_size": 2**64 - 1}


def gpu(rank, ranks, chunks, operations):
    """A GPU of one thread block that has a channel to each other one, in ascending order, and their buffers i, o, s."""
    peers = [peer for peer in range(ranks) if peer != rank]
    buffers = [{"rank": peer, "type": kind, "access_channel_types": ["memory"]} for peer in peers for kind in "ios"]
    return {"id": rank, "input_chunks": chunks[0], "output_chunks": chunks[1], "scratch_chunks": chunks[2],
            "channels": [{"channel_type": "memory", "connected_to": peers}], "remote_buffers": buffers, "semaphores": [],
            "threadblocks": [{"id": 0, "ops": operations,
                              "channels": [{"channel_type": "memory", "channel_ids": list(range(len(peers)))}],
                              "remote_buffer_refs": [{"access_channel_type": "memory",
                                                      "remote_buffer_ids": list(range(len(buffers)))}]}]}


def own(kind, index, size=1):
    return {"type": kind, "index": index, "size": size}


def remote(rank, peer, kind, index, size=1):
    return {"buffer_id": 3 * (peer if peer < rank else peer - 1) + "ios".index(kind), "index": index, "size": size}


def sync(name, ranks):
    return {"name": name, "channel_ids": list(range(ranks - 1)), "channel_type": "memory"}


def moves(name, source, target, **more):
    return {"name": name, "src_buff": source, "dst_buff": target, "channel_type": "memory", **more}


def all_reduce(ranks):
    """GPU r sums up chunk r of all, which it reads, and writes the sum to all."""
    gpus = []
    for rank in range(ranks):
        peers = [peer for peer in range(ranks) if peer != rank]
        gpus.append(gpu(rank, ranks, (ranks, ranks, 0), [
            sync("rlxsignal", ranks), sync("rlxwait", ranks), {"name": "nop"},
            moves("rres", [own("i", rank)] + [remote(rank, peer, "i", rank) for peer in peers],
                  [own("o", rank)] + [remote(rank, peer, "o", rank) for peer in peers], reduce_op="sum"),
            {"name": "nop"}, sync("signal", ranks), sync("wait", ranks)]))
    return plan("allreduce", gpus)


def all_gather(ranks, kind="put"):
    """Every GPU puts its chunk to all others, or gets theirs."""
    gpus = []
    for rank in range(ranks):
        peers = [peer for peer in range(ranks) if peer != rank]
        if kind == "put":
            transfers = [moves("put", [own("i", 0)], [remote(rank, peer, "o", rank)]) for peer in peers]
        else:
            transfers = [moves("get", [remote(rank, peer, "i", 0)], [own("o", peer)]) for peer in peers]
        gpus.append(gpu(rank, ranks, (1, ranks, 0), [
            moves("copy", [own("i", 0)], [own("o", rank)]), *transfers, sync("signal", ranks), sync("wait", ranks)]))
    return plan("allgather", gpus)


def through_scratch():
    """Two GPUs: each puts half of its input into the other's scratch, adds up, and puts the sum back."""
    gpus = []
    for rank in (0, 1):
        peer = 1 - rank
        gpus.append(gpu(rank, 2, (2, 2, 1), [
            {"name": "pws", "src_buff": [own("i", peer)], "dst_buff": [remote(rank, peer, "s", 0)], "channel_ids": [0],
             "channel_type": "memory"},
            sync("wait", 2),
            {"name": "pipeline", "iter_context": {"unit_size": 1024, "num_chunks": 1},
             "ops": [moves("res", [own("i", rank), own("s", 0)], [own("o", rank), remote(rank, peer, "o", rank)],
                           reduce_op="sum")]},
            sync("signal", 2), sync("wait", 2)]))
    return plan("allreduce", gpus)


def packets(ranks):
    """Each GPU puts its chunks as packets into the scratch of those that add them up, which put the sums back as packets;
    chunk r of the scratch is that of GPU r's input, chunk ranks + r GPU r's sum."""
    gpus = []
    for rank in range(ranks):
        peers = [peer for peer in range(ranks) if peer != rank]
        gpus.append(gpu(rank, ranks, (ranks, ranks, 2 * ranks), [
            *(moves("ppkt", [own("i", peer)], [remote(rank, peer, "s", rank)]) for peer in peers),
            moves("respkt", [own("i", rank), *(own("s", peer) for peer in peers)],
                  [own("o", rank), *(remote(rank, peer, "s", ranks + rank) for peer in peers)], reduce_op="sum"),
            *(moves("upkt", [own("s", ranks + peer)], [own("o", peer)]) for peer in peers)]))
    return plan("allreduce", gpus, protocol="LL")


def passed_on():
    """Three GPUs hand on their chunk in packets: GPU r puts it to r + 1, which puts it to r + 2 (rppkt)."""
    gpus = []
    for rank in range(3):
        after, before, last = (rank + 1) % 3, (rank - 1) % 3, (rank - 2) % 3
        gpus.append(gpu(rank, 3, (1, 3, 3), [
            moves("copy", [own("i", 0)], [own("o", rank)]),
            moves("ppkt", [own("i", 0)], [remote(rank, after, "s", rank)]),
            moves("rppkt", [own("s", before)], [remote(rank, after, "s", before)]),
            moves("upkt", [own("s", before)], [own("o", before)]),
            moves("upkt", [own("s", last)], [own("o", last)])]))
    return plan("allgather", gpus, protocol="LL")


def two_blocks(semaphores=({"init_value": 0},)):
    """Two GPUs exchange their chunks: a thread block gets the other one's input into the scratch and releases a semaphore; a
    second block acquires it, and copies its data into the output."""
    gpus = []
    for rank in (0, 1):
        peer = 1 - rank
        one = gpu(rank, 2, (1, 2, 1), [
            moves("copy", [own("i", 0)], [own("o", rank)]),
            moves("get", [remote(rank, peer, "i", 0)], [own("s", 0)]),
            {"name": "sem_release", "semaphore_ids": [0]}])
        one["semaphores"] = list(semaphores)
        one["threadblocks"].append({**one["threadblocks"][0], "id": 1, "ops": [
            {"name": "sem_acquire", "semaphore_ids": [0]}, moves("copy", [own("s", 0)], [own("o", peer)])]})
        gpus.append(one)
    return plan("allgather", gpus)


def shared(blocks):
    """All-gather of two GPUs by `blocks` thread blocks, each of which copies and puts its part of the one chunk."""
    gpus = []
    for rank in (0, 1):
        one = gpu(rank, 2, (1, 2, 0), [])
        template = one["threadblocks"][0]
        one["threadblocks"] = []
        for block in range(blocks):
            group = {"tbg_info": {"tb_id": block, "tbg_size": blocks}}
            one["threadblocks"].append({**template, "id": block, "ops": [
                moves("copy", [own("i", 0)], [own("o", rank)], **group),
                moves("put", [own("i", 0)], [remote(rank, 1 - rank, "o", rank)], **group),
                {"name": "barrier", "barrier_id": 0, "num_threadblocks": blocks},
                *([sync("signal", 2), sync("wait", 2)] if block == 0 else [])]})
        gpus.append(one)
    return plan("allgather", gpus)


def behind_switch(index, size=1):
    return {"switch_channel_id": 0, "index": index, "size": size}


def with_switch(content, buffer, blocks, operations):
    """The plan with a switch channel of all GPUs to `buffer`, and `blocks` thread blocks per GPU, as many instances of the
    first one as the Python language makes of it (replicate_instances of language/internal/gpu.py): `operations` gives
    those of a GPU's block."""
    gpus = content["gpus"]
    for one in gpus:
        rank, template = one["id"], one["threadblocks"][0]
        peers = one["channels"][0]["connected_to"]
        chunks = one["input_chunks" if buffer == "i" else "output_chunks"]
        one["channels"] = [{"channel_type": "memory", "connected_to": peers * blocks},
                           {"channel_type": "switch", "buffer_type": buffer,
                            "rank_groups": [{"size": chunks, "ranks": list(range(len(gpus)))}]}]
        one["threadblocks"] = [
            {**template, "id": block, "ops": operations(rank, block),
             "channels": [{"channel_type": "memory",
                           "channel_ids": list(range(block * len(peers), (block + 1) * len(peers)))},
                          {"channel_type": "switch", "channel_ids": [0]}]} for block in range(blocks)]
    return content


def all_reduce_through_switch(ranks, blocks=1):
    """GPU r loads the sums of its chunks through NVLink's switch and stores them to all, in place: the plan of
    language/tests/single_node/allreduce_nvls_zero_copy.py."""
    def operations(rank, block):
        chunk = behind_switch(rank * blocks + block)
        return [sync("rlxsignal", ranks), sync("rlxwait", ranks), {"name": "nop"},
                {"name": "glres", "src_buff": [chunk], "dst_buff": [chunk], "channel_type": "switch", "reduce_op": "sum"},
                {"name": "nop"}, sync("rlxsignal", ranks), sync("rlxwait", ranks)]
    chunks = ranks * blocks
    gpus = [gpu(rank, ranks, (chunks, chunks, 0), []) for rank in range(ranks)]
    return with_switch(plan("allreduce", gpus, inplace=True), "i", blocks, operations)


def all_gather_through_switch(ranks):
    """Each GPU stores its chunk to all through the switch."""
    def operations(rank, _):
        return [{"name": "gstore", "src_buff": [own("i", 0)], "dst_buff": [behind_switch(rank)], "channel_type": "switch"},
                sync("signal", ranks), sync("wait", ranks)]
    return with_switch(plan("allgather", [gpu(rank, ranks, (1, ranks, 0), []) for rank in range(ranks)]), "o", 1, operations)
