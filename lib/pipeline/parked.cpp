// SPDX-License-Identifier: BSD-3-Clause
#include "pipeline/parked.hpp"

#include <algorithm>

#include "iface/own_addresses.hpp"
#include "neigh/neighbour.hpp"
#include "pipeline/family.hpp"
#include "pipeline/stages.hpp"

namespace mayfly {
namespace {

using Queue = Parking::Queue;

// Of a scan nobody waits for the answers: it must leave control and the networks room for others' questions.
constexpr uint32_t kBlindQuestionsPerMs = 8;

bool want(Path& path, uint32_t ifindex, uint64_t id, IpAddress address) noexcept {
  return path.to_control.push({.type = WorkerMessage::Type::neighbour_wanted,
                               .ifindex = ifindex,
                               .id = id,
                               .mac = 0,
                               .address = address});
}

void ask(Path& path, Queue& queue) noexcept {
  const bool asked = want(path, queue.ifindex, queue.id, queue.address);
  queue.asked_ms = static_cast<uint16_t>(asked ? path.now_ms() : path.now_ms() - kAskAgainMs);
}

// The packet cannot wait, but a later one may find a MAC. A neighbour that is known of is asked already.
void ask_blindly(Path& path, const Interface& egress, IpAddress next_hop) noexcept {
  BlindQuestions& questions = path.blind_questions;
  if (questions.at_ms != path.now_ms()) questions = {.at_ms = path.now_ms()};
  if (questions.count == kBlindQuestionsPerMs) return;
  if (source_of(path.interfaces, egress, next_hop).none()) return;
  if (find_neighbour(egress.neighbours.read(), next_hop) != nullptr) return;
  if (want(path, egress.ifindex, egress.id, next_hop)) ++questions.count;
}

uint16_t protocol_of(const Queue& queue) noexcept {
  return queue.address.is_v4() ? kProtocolIpv4 : kProtocolIpv6;
}

// The sender is told that the next hop does not answer.
void report_oldest(Path& path, const Queue& queue, const Interface& egress) noexcept {
  Packet packet{.mbuf = queue.mbufs[0],
                .network = rte_pktmbuf_mtod(queue.mbufs[0], uint8_t*),
                .netns = egress.netns.read(),
                .egress = &egress,
                .protocol = protocol_of(queue)};
  if (queue.address.is_v4())
    report<V4>(path, packet, V4::kNeighbourFailed);
  else
    report<V6>(path, packet, V6::kNeighbourFailed);
}

// The reference goes last: with it teardown may take the interface's counters as final.
void drop_oldest(Path& path, Queue& queue, DropReason reason) noexcept {
  const uint32_t ifindex = queue.ifindex;
  drop(path, path.parking.pop(queue), &path.interface(ifindex), Side::tx, reason);
  settle_drops(path);
  path.statistics.release(ifindex);
}

void drop_queue(Path& path, Queue& queue, DropReason reason) noexcept {
  for (uint32_t left = queue.count; left != 0; --left) drop_oldest(path, queue, reason);
}

void fail_oldest(Path& path, Queue& queue, const Interface& egress) noexcept {
  report_oldest(path, queue, egress);
  drop_oldest(path, queue, DropReason::neighbour_failed);
}

void fail_queue(Path& path, Queue& queue, const Interface& egress) noexcept {
  for (uint32_t left = queue.count; left != 0; --left) fail_oldest(path, queue, egress);
}

void send_queue(Path& path, Queue& queue, const Interface& egress, Mac mac) noexcept {
  PacketVector packets;
  const uint16_t protocol = protocol_of(queue);
  for (uint32_t left = queue.count; left != 0; --left) {
    rte_mbuf* const mbuf = path.parking.pop(queue);
    path.statistics.release(egress.ifindex);
    packets.append(Packet{.mbuf = mbuf,
                          .network = rte_pktmbuf_mtod(mbuf, uint8_t*),
                          .egress = &egress,
                          .destination_mac = mac,
                          .protocol = protocol});
  }
  encapsulate_aside(path, packets);
}

void check_queue(Path& path, Queue& queue) noexcept {
  const Interface* egress = find_live(path, queue.ifindex, queue.id);
  if (egress == nullptr || sendable_bytes(path, *egress) == 0)
    return drop_queue(path, queue, DropReason::interface_gone);
  if (const Neighbour* neighbour = find_neighbour(egress->neighbours.read(), queue.address);
      neighbour != nullptr) {
    const NeighbourWord word = neighbour->read();
    if (word.usable()) return send_queue(path, queue, *egress, word.mac());
    if (word.is(NeighbourState::kFailed)) return fail_queue(path, queue, *egress);
  }
  const auto ms_since = [now = path.now_ms()](uint16_t then) { return static_cast<uint16_t>(now - then); };
  for (uint32_t left = queue.count; left != 0 && ms_since(queue.parked_ms[0]) >= kParkedForMs; --left)
    fail_oldest(path, queue, *egress);
  if (queue.count != 0 && ms_since(queue.asked_ms) >= kAskAgainMs) ask(path, queue);
}

}  // namespace

// A source is looked for among all addresses of the interface: only for the first packet to a neighbour.
void park(Path& path, const Packet& packet, IpAddress next_hop) noexcept {
  const Interface& egress = *packet.egress;
  Parking& parking = path.parking;
  const auto refuse = [&](DropReason reason) { drop(path, packet.mbuf, &egress, Side::tx, reason); };
  Queue* queue = parking.find(egress.ifindex, egress.id, next_hop);
  // Whoever takes the place of the oldest adds nothing.
  const bool replaces = queue != nullptr && queue->count == Parking::kPacketsPerNeighbour;
  if (replaces) drop_oldest(path, *queue, DropReason::neighbour_queue_full);
  if (!parking.has_room(replaces ? 0 : path.statistics.held(egress.ifindex), packet.mbuf->nb_segs)) {
    if (queue == nullptr) ask_blindly(path, egress, next_hop);
    return refuse(DropReason::neighbour_queue_full);
  }
  if (queue == nullptr && source_of(path.interfaces, egress, next_hop).none())
    return refuse(DropReason::neighbour_no_source);
  rte_pktmbuf_adj(packet.mbuf,
                  static_cast<uint16_t>(packet.network - rte_pktmbuf_mtod(packet.mbuf, const uint8_t*)));
  path.statistics.hold(egress.ifindex);
  if (queue != nullptr) return parking.push(*queue, packet.mbuf, path.now_ms());
  ask(path, parking.open(egress.ifindex, egress.id, next_hop, packet.mbuf, path.now_ms()));
}

void neighbour_resolved(Path& path, const ControlMessage& message) noexcept {
  if (Queue* queue = path.parking.find(message.ifindex, message.id, message.address); queue != nullptr)
    check_queue(path, *queue);
}

void neighbour_failed(Path& path, const ControlMessage& message) noexcept {
  Queue* queue = path.parking.find(message.ifindex, message.id, message.address);
  if (queue == nullptr) return;
  if (const Interface* egress = find_live(path, message.ifindex, message.id); egress != nullptr)
    fail_queue(path, *queue, *egress);
  else
    drop_queue(path, *queue, DropReason::interface_gone);
}

void check_parked(Path& path, uint32_t most, uint32_t* cursor) noexcept {
  Parking& parking = path.parking;
  for (uint32_t left = std::min(most, parking.queues()); left != 0 && parking.packets() != 0; --left) {
    if (*cursor >= parking.queues()) *cursor = 0;
    if (Queue& queue = parking.queue((*cursor)++); queue.count != 0) check_queue(path, queue);
  }
}

void drop_all_parked(Path& path) noexcept {
  for (uint32_t number = 0; number < path.parking.queues(); ++number)
    drop_queue(path, path.parking.queue(number), DropReason::shutdown);
}

}  // namespace mayfly
