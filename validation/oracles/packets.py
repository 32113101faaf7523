# SPDX-License-Identifier: GPL-2.0-only
"""A second simulator, small and slow: one event per packet and node on a line or star, hosts with queue pairs, windows,
ACKs and credits. It shares neither code nor optimisations with weft; where they agree to the picosecond, both follow
the documents.

Rules. A switch forwards a packet when all of it has arrived, first in first out per output. A NIC sends when its port is
free: ACKs and credits first, in order, then one packet of each queue pair in turn that has data and room in its window. At
each moment a host first takes arrivals, then decides what to send. Two packets that reach one switch output from different
inputs at the same time are a tie; this model stops with an error then.
"""

import collections
import heapq

from oracles.wire import serialization

ARRIVAL, SOFTWARE, SEND = range(3)  # order of events at the same time

Packet = collections.namedtuple("Packet", "kind source destination queue_pair payload message")


class QueuePair:
    def __init__(self, destination):
        self.destination = destination
        self.packets = collections.deque()
        self.in_flight = 0
        self.listed = False


class Host:
    def __init__(self):
        self.free = 0
        self.control = collections.deque()
        self.turns = collections.deque()
        self.queue_pairs = []
        self.waking = False


class Message:
    def __init__(self, source, destination, size, issued):
        self.source, self.destination, self.size, self.issued = source, destination, size, issued
        self.delivered = None


class Simulator:
    """`hosts` around one switch (`through_switch`) or 2 hosts on one link."""

    def __init__(self, network, hosts, rate, delay, through_switch=True):
        self.network, self.rate, self.delay, self.through_switch = network, rate, delay, through_switch
        self.hosts = [Host() for _ in range(hosts)]
        self.outputs = [(0, -1, -1)] * hosts  # per output of the switch: free at, last arrival, its input
        self.messages = []
        self.now = 0
        self.events = []
        self.scheduled = 0
        self.on_message = lambda host, message, queue_pair: None
        self.on_credit = lambda host, queue_pair: None

    def at(self, time, order, action):
        self.scheduled += 1
        heapq.heappush(self.events, (time, order, self.scheduled, action))

    def run(self):
        while self.events:
            self.now, _, _, action = heapq.heappop(self.events)
            action()
        return self.now

    def open(self, host, destination):
        self.hosts[host].queue_pairs.append(QueuePair(destination))
        return len(self.hosts[host].queue_pairs) - 1

    def post(self, host, queue_pair, size):
        pair = self.hosts[host].queue_pairs[queue_pair]
        message = Message(host, pair.destination, size, self.now)
        self.messages.append(message)
        payloads = self.network.payloads(size)
        for i, payload in enumerate(payloads):
            last = message if i + 1 == len(payloads) else None
            pair.packets.append(Packet("data", host, pair.destination, queue_pair, payload, last))
        self.list_ready(host, queue_pair)
        return message

    def send_credit(self, host, destination, queue_pair):
        self.hosts[host].control.append(Packet("credit", host, destination, queue_pair, 0, None))
        self.wake(host)

    def list_ready(self, host, queue_pair):
        pair = self.hosts[host].queue_pairs[queue_pair]
        if pair.listed or not pair.packets:
            return
        acked = self.network.control > 0
        if acked and pair.in_flight and pair.in_flight + pair.packets[0].payload > self.network.window:
            return
        pair.listed = True
        self.hosts[host].turns.append(queue_pair)
        self.wake(host)

    def wake(self, number):
        host = self.hosts[number]
        if not host.waking:
            host.waking = True
            self.at(max(self.now, host.free), SEND, lambda: self.send(number))

    def send(self, number):
        host = self.hosts[number]
        host.waking = False
        if host.control:
            packet = host.control.popleft()
        else:
            queue_pair = host.turns.popleft()
            pair = host.queue_pairs[queue_pair]
            pair.listed = False
            packet = pair.packets.popleft()
            if self.network.control:
                pair.in_flight += packet.payload
        host.free = self.now + self.time(packet)
        self.link(host.free, packet, at_switch=not self.through_switch)
        if packet.kind == "data":
            self.list_ready(number, packet.queue_pair)
        if host.control or host.turns:
            self.wake(number)

    def time(self, packet):
        wire = packet.payload + self.network.overhead if packet.kind == "data" else self.network.control
        return serialization(wire, self.rate)

    def link(self, sent, packet, at_switch):
        """The last bit leaves at `sent`: from the switch (or the only link) to the host, or from a host to the switch."""
        if at_switch:
            self.at(sent + self.delay, ARRIVAL, lambda: self.receive(packet))
        else:
            self.at(sent + self.delay + self.network.latency, ARRIVAL, lambda: self.forward(packet))

    def forward(self, packet):
        free, last, source = self.outputs[packet.destination]
        if last == self.now and source != packet.source:
            raise ArithmeticError(f"at {self.now} ps two packets reach the switch port to host {packet.destination}")
        free = max(self.now, free) + self.time(packet)
        self.outputs[packet.destination] = (free, self.now, packet.source)
        self.link(free, packet, at_switch=True)

    def receive(self, packet):
        host = self.hosts[packet.destination]
        if packet.kind == "data":
            if self.network.control:
                host.control.append(
                    Packet("ack", packet.destination, packet.source, packet.queue_pair, 0, packet.payload)
                )
                self.wake(packet.destination)
            if packet.message is not None:
                packet.message.delivered = self.now
                self.on_message(packet.destination, packet.message, packet.queue_pair)
        elif packet.kind == "ack":
            host.queue_pairs[packet.queue_pair].in_flight -= packet.message
            self.list_ready(packet.destination, packet.queue_pair)
        else:
            self.on_credit(packet.destination, packet.queue_pair)


class RingRun:
    """Ranks that run the programs of oracles.ring on a Simulator, with credits: a slice needs a free slot of the
    receiver, which frees the slot when the operation that receives the slice runs."""

    def __init__(self, simulator, programs, credits):
        self.simulator, self.programs, self.credits = simulator, programs, credits
        ranks = len(programs)
        self.position = [0] * ranks
        self.arrived = [collections.deque() for _ in range(ranks)]
        self.in_flight = [0] * ranks
        self.queue_pair = [None] * ranks
        self.finished = [None] * ranks
        simulator.on_message = self.message
        simulator.on_credit = self.credit

    def run(self):
        for rank in range(len(self.programs)):
            self.simulator.at(0, SOFTWARE, lambda rank=rank: self.advance(rank))
        return self.simulator.run()

    def message(self, host, message, queue_pair):
        self.arrived[host].append((message, queue_pair))
        self.advance(host)

    def credit(self, host, _queue_pair):
        self.in_flight[host] -= 1
        self.advance(host)

    def advance(self, rank):
        limited = self.simulator.network.control > 0
        program = self.programs[rank]
        while self.position[rank] < len(program):
            receives, size, sends = program[self.position[rank]]
            if receives and not self.arrived[rank]:
                return
            if sends and limited and self.in_flight[rank] >= self.credits:
                return
            if receives:
                message, queue_pair = self.arrived[rank].popleft()
                if limited:
                    self.simulator.send_credit(rank, message.source, queue_pair)
            if sends:
                if self.queue_pair[rank] is None:
                    self.queue_pair[rank] = self.simulator.open(rank, (rank + 1) % len(self.programs))
                self.in_flight[rank] += 1
                self.simulator.post(rank, self.queue_pair[rank], size)
            self.position[rank] += 1
        if self.finished[rank] is None:
            self.finished[rank] = self.simulator.now
