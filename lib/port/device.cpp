// SPDX-License-Identifier: BSD-3-Clause
#include "port/device.hpp"

#include <net/if.h>
#include <rte_dev.h>
#include <rte_devargs.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_vfio.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "base/log.hpp"
#include "port/device_errors.hpp"
#include "port/eal_log.hpp"
#include "port/rss.hpp"

namespace mayfly {
namespace {

// Of a queue of net_af_xdp: its fill ring, and what it was sending.
constexpr uint64_t kXdpBuffersKept = 2 * 2'048;
constexpr uint32_t kPageBytes = 4'096;
constexpr uint32_t kMemifBufferBytes = 2'048;  // the driver's default

// On DPDK's interrupt thread: only a mark, which refresh() finds.
int mark_removed(uint16_t, rte_eth_event_type, void* removed, void*) {
  static_cast<std::atomic<bool>*>(removed)->store(true, std::memory_order_release);
  return 0;
}

void mark_unplugged(const char*, rte_dev_event_type type, void* removed) {
  if (type == RTE_DEV_EVENT_REMOVE)
    static_cast<std::atomic<bool>*>(removed)->store(true, std::memory_order_release);
}

std::vector<std::string> offload_names(uint64_t offloads, const char* (*name_of)(uint64_t)) {
  std::vector<std::string> names;
  for (; offloads != 0; offloads &= offloads - 1) names.emplace_back(name_of(offloads & -offloads));
  return names;
}

}  // namespace

Device::Device(const PortSettings& settings, rte_mempool& pool)
    : settings_(settings), pool_(pool), devargs_(Devargs::parse(settings.devargs)) {
  room_.device = devargs_.device;
  room_.buffer_bytes = rte_pktmbuf_data_room_size(&pool) - RTE_PKTMBUF_HEADROOM;
  info_.device = devargs_.device;
}

Result<std::unique_ptr<Device>> Device::open(const PortSettings& settings, rte_mempool& pool) {
  std::unique_ptr<Device> device(new Device(settings, pool));
  Status opened = device->prepare();
  if (opened) {
    const EalErrorScope words;
    opened = device->probe(words);
    rte_eth_dev_info offered{};
    if (opened && rte_eth_dev_info_get(device->info_.port, &offered) != 0)
      opened = fail(EIO, "{} does not describe itself{}", device->devargs_.device, words.reason());
    if (opened) opened = device->check_queues(offered);
    if (opened) opened = device->plan(offered);
    if (opened) opened = device->configure(offered, words);
    if (opened) opened = device->set_up_queues(offered, words);
    if (opened) opened = device->start(offered, words);
    if (opened) device->describe(offered);
  }
  if (!opened) return fail(opened.error().code, "{}: {}", settings.name, opened.error().text);
  device->refresh();
  return device;
}

// What can be known before the device exists.
Status Device::prepare() {
  rte_devargs parsed{};
  {
    const EalErrorScope quiet;
    const bool known = rte_devargs_parse(&parsed, settings_.devargs.c_str()) == 0;
    rte_devargs_reset(&parsed);
    if (!known)
      return fail(ENODEV, "devargs '{}': no driver of this name; known are {}", settings_.devargs,
                  list_known_drivers());
  }
  if (auto checked = check_device_files(devargs_); !checked) return checked;
  if (auto prepared = prepare_kernel_interface(); !prepared) return prepared;
  uint16_t taken = 0;
  if (!settings_.existing && !is_pci(devargs_) &&
      rte_eth_dev_get_port_by_name(devargs_.device.c_str(), &taken) == 0)
    return fail(EEXIST, "devargs '{}': the device {} exists already: give it another number",
                settings_.devargs, devargs_.device);
  if (!devargs_.is_of("net_bonding")) return {};
  if (auto opened = members_.open(devargs_, settings_, room_.buffer_bytes, info_.notes); !opened)
    return opened;
  kernel_ifindexes_ = members_.kernel_ifindexes();
  room_.kernel_interface = members_.kernel_interface();
  if (members_.kernel_mtu() != 0) room_.kernel_mtu = members_.kernel_mtu();
  if (members_.ring_frame() != 0) room_.ring_frame = members_.ring_frame();
  return {};
}

Status Device::prepare_kernel_interface() {
  const bool packet_socket = devargs_.is_of("net_af_packet") || devargs_.is_of("eth_af_packet");
  info_.kernel_interface = devargs_.kernel_interface();
  if (packet_socket && info_.kernel_interface.empty())
    return fail(EINVAL, "devargs '{}': which kernel interface? {},iface=NAME", settings_.devargs,
                devargs_.device);
  if (info_.kernel_interface.empty()) return {};
  const auto kernel = read_kernel_interface(info_.kernel_interface);
  if (!kernel) return std::unexpected(kernel.error());
  kernel_ = *kernel;
  room_.kernel_interface = info_.kernel_interface;
  room_.kernel_mtu = kernel_->mtu;
  kernel_ifindexes_ = {kernel_->ifindex};
  if (packet_socket) return prepare_packet_socket();
  return devargs_.is_of("net_af_xdp") ? prepare_xdp_socket() : Status();
}

// The driver lends whole mbufs to the kernel, which takes none larger than a page.
Status Device::prepare_xdp_socket() {
  const uint32_t element = pool_.header_size + pool_.elt_size + pool_.trailer_size;
  if (element > kPageBytes)
    return fail(EINVAL,
                "devargs '{}': its mbufs are {} B with their headers, accepted at most {}: set "
                "mbufs.size: {} or less",
                settings_.devargs, element, kPageBytes,
                room_.buffer_bytes + RTE_PKTMBUF_HEADROOM - (element - kPageBytes));
  const uint32_t queues = std::max(settings_.rx_queues, settings_.tx_queues);
  if (queues > 1 && devargs_.find("queue_count") == nullptr) {
    devargs_.add("queue_count", fmt::format("{}", queues));
    info_.notes.push_back(fmt::format("added to the devargs: queue_count={}", queues));
  }
  return {};
}

Status Device::prepare_packet_socket() {
  if (auto permitted = check_packet_socket_permission(); !permitted) return permitted;
  const auto ring = complete_packet_ring(devargs_, settings_, room_.buffer_bytes, info_.notes);
  if (!ring) return std::unexpected(ring.error());
  ring_ = *ring;
  room_.ring_frame = ring_->most_frame();
  if (auto enough = check_queue_count(devargs_, settings_, ring_->queue_pairs, ring_->queue_pairs); !enough)
    return enough;
  // Now, because a device that is not started leaks: see the header.
  const auto limits = plan_frames(settings_.mtu, room_);
  if (!limits) return std::unexpected(limits.error());
  return {};
}

Status Device::probe(const EalErrorScope& words) {
  info_.devargs = devargs_.text();
  if (is_packet_socket()) ring_drops_.emplace();
  // The EAL looks for the kernel's modules when it starts, and never again by itself.
  if (is_pci(devargs_) && rte_vfio_is_enabled("vfio") == 0) rte_vfio_enable("vfio");
  if (!settings_.existing)
    if (const int error = rte_dev_probe(info_.devargs.c_str()); error != 0)
      return probe_error(devargs_, error, words.reason());
  rte_dev_iterator iterator{};
  RTE_ETH_FOREACH_MATCHING_DEV(info_.port, devargs_.device.c_str(), &iterator) {
    rte_eth_iterator_cleanup(&iterator);
    break;
  }
  if (info_.port >= RTE_MAX_ETHPORTS) {
    info_.port = kNoPort;
    return fail(ENODEV, "{}: the driver made no Ethernet device of it{}", devargs_.device, words.reason());
  }
  if (ring_drops_) ring_drops_->after_probe(kernel_->ifindex);
  watch_removal();
  return {};
}

Status Device::check_queues(const rte_eth_dev_info& offered) const {
  return check_queue_count(devargs_, settings_, offered.max_rx_queues, offered.max_tx_queues);
}

Status Device::plan(const rte_eth_dev_info& offered) {
  // net_af_packet and net_memif tell of a limit of 1,500, which neither the kernel's rings nor memif's
  // buffers have.
  if (is_memif()) {
    const auto bytes = devargs_.number("bsize");
    if (!bytes) return std::unexpected(bytes.error());
    room_.ring_frame = bytes->value_or(kMemifBufferBytes);
  } else if (counts_mtu()) {
    const uint32_t overhead = frame_overhead(offered.max_rx_pktlen, offered.max_mtu);
    room_.header_bytes = overhead - kFcsBytes;
    room_.least_mtu = std::max<uint32_t>(offered.min_mtu, room_.least_mtu);
    room_.most_mtu = std::min<uint32_t>(offered.max_mtu, offered.max_rx_pktlen - overhead);
    room_.scatter = (offered.rx_offload_capa & RTE_ETH_RX_OFFLOAD_SCATTER) != 0;
  }
  auto limits = plan_frames(settings_.mtu, room_);
  if (!limits) return std::unexpected(limits.error());
  limits_ = *limits;
  return {};
}

Status Device::configure(const rte_eth_dev_info& offered, const EalErrorScope& words) {
  rte_eth_conf wanted{};
  if (counts_mtu()) wanted.rxmode.mtu = limits_.device_mtu;
  if (limits_.needs_scatter) wanted.rxmode.offloads |= RTE_ETH_RX_OFFLOAD_SCATTER;
  // Never MBUF_FAST_FREE: mbufs of a port leave through any other, and may be shared.
  wanted.txmode.offloads = offered.tx_offload_capa & RTE_ETH_TX_OFFLOAD_MULTI_SEGS;
  if ((*offered.dev_flags & RTE_ETH_DEV_INTR_RMV) != 0) wanted.intr_conf.rmv = 1;
  const RssTypes rss = choose_rss(settings_.rx_queues > 1 ? offered.flow_type_rss_offloads : 0);
  uint64_t& rss_types = wanted.rx_adv_conf.rss_conf.rss_hf;
  rss_types = rss.all;
  if (rss_types != 0) wanted.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
  const uint16_t rx_queues = static_cast<uint16_t>(settings_.rx_queues);
  const uint16_t tx_queues = static_cast<uint16_t>(settings_.tx_queues);
  int error = rte_eth_dev_configure(info_.port, rx_queues, tx_queues, &wanted);
  if (error != 0 && rss.without_tags != 0 && rss.without_tags != rss.all) {
    rss_types = rss.without_tags;
    error = rte_eth_dev_configure(info_.port, rx_queues, tx_queues, &wanted);
  }
  info_.rss_types = rss_names(rss_types);
  info_.rss_offered = rss_names(offered.flow_type_rss_offloads);
  if (error != 0) return device_error(devargs_, "can not be configured", error, words.reason());
  info_.rx_offloads = offload_names(wanted.rxmode.offloads, rte_eth_dev_rx_offload_name);
  info_.tx_offloads = offload_names(wanted.txmode.offloads, rte_eth_dev_tx_offload_name);
  // Settled until it is closed, and with it what set_mtu() accepts.
  room_.scatter = limits_.needs_scatter;
  if (const auto settled = plan_frames(settings_.mtu, room_)) limits_.most_mtu = settled->most_mtu;
  return {};
}

Status Device::set_up_queues(const rte_eth_dev_info& offered, const EalErrorScope& words) {
  auto rx_descriptors = static_cast<uint16_t>(std::min<uint32_t>(settings_.rx_descriptors, UINT16_MAX));
  auto tx_descriptors = static_cast<uint16_t>(std::min<uint32_t>(settings_.tx_descriptors, UINT16_MAX));
  if (const int error = rte_eth_dev_adjust_nb_rx_tx_desc(info_.port, &rx_descriptors, &tx_descriptors);
      error != 0)
    return device_error(devargs_, "accepts no number of descriptors", error, words.reason());
  const int node = rte_eth_dev_socket_id(info_.port);
  const auto socket = node < 0 ? static_cast<unsigned>(SOCKET_ID_ANY) : static_cast<unsigned>(node);
  rte_eth_rxconf rx = offered.default_rxconf;
  if (limits_.needs_scatter) rx.offloads |= RTE_ETH_RX_OFFLOAD_SCATTER;
  for (uint16_t queue = 0; queue < settings_.rx_queues; ++queue)
    if (const int error = rte_eth_rx_queue_setup(info_.port, queue, rx_descriptors, socket, &rx, &pool_);
        error != 0)
      return device_error(devargs_, fmt::format("can not set up receive queue {}", queue), error,
                          words.reason());
  rte_eth_txconf tx = offered.default_txconf;
  tx.offloads |= offered.tx_offload_capa & RTE_ETH_TX_OFFLOAD_MULTI_SEGS;
  for (uint16_t queue = 0; queue < settings_.tx_queues; ++queue)
    if (const int error = rte_eth_tx_queue_setup(info_.port, queue, tx_descriptors, socket, &tx); error != 0)
      return device_error(devargs_, fmt::format("can not set up transmit queue {}", queue), error,
                          words.reason());
  info_.rx_descriptors = rx_descriptors;
  info_.tx_descriptors = tx_descriptors;
  return {};
}

Status Device::start(const rte_eth_dev_info& offered, const EalErrorScope& words) {
  // Physical devices take it from the configuration; on a kernel interface it would change the interface
  // itself.
  if (!is_pci(devargs_) && !keeps_driver_mtu()) {
    const int error = rte_eth_dev_set_mtu(info_.port, static_cast<uint16_t>(limits_.device_mtu));
    if (error != 0 && error != -ENOTSUP)
      return device_error(devargs_, fmt::format("refuses an MTU of {}", limits_.device_mtu), error,
                          words.reason());
  }
  if (const int error = rte_eth_dev_start(info_.port); error != 0)
    return device_error(devargs_, "does not start", error, words.reason());
  started_ = true;
  info_.most_mac_filters = offered.max_mac_addrs > 0 ? offered.max_mac_addrs - 1 : 0;
  settle_mac();
  info_.first_mac = info_.mac;
  settle_promiscuous();
  return {};
}

// net_tap is a wire to the kernel, whose end of it has the address that the driver gives both: ours differs
// in its last bit. Any other device without an address gets one of its own: it is the source of what its
// interface sends.
void Device::settle_mac() {
  rte_ether_addr address{};
  rte_eth_macaddr_get(info_.port, &address);
  if (rte_is_zero_ether_addr(&address) || rte_is_multicast_ether_addr(&address)) {
    rte_eth_random_addr(address.addr_bytes);
    takes_mac_ = rte_eth_dev_default_mac_addr_set(info_.port, &address) == 0;
    info_.notes.emplace_back(
        takes_mac_ ? "the device has no MAC address: a random one was given"
                   : "the device has no MAC address and takes none: its interface has a random one");
  }
  info_.mac = load_mac(address.addr_bytes);
  if (!shares_mac_with_kernel()) return;
  info_.mac ^= 1;
  info_.notes.push_back(fmt::format("the kernel's end has {}, the port {}",
                                    format_mac(load_mac(address.addr_bytes)), format_mac(info_.mac)));
}

// Multicast always: neighbour discovery lives on it. Drivers on kernel interfaces know promiscuous mode
// alone.
void Device::settle_promiscuous() {
  takes_all_multicast_ = rte_eth_allmulticast_enable(info_.port) == 0;
  if (auto applied = apply_promiscuous(); !applied && applied.error().code != EOPNOTSUPP)
    info_.warnings.push_back(
        fmt::format("{}: frames to other MAC addresses may not arrive", applied.error().text));
  if (!info_.promiscuous_reason.empty())
    info_.warnings.push_back(fmt::format("stays promiscuous: {}", info_.promiscuous_reason));
}

// Why it could not do without, as far as that is the device alone.
std::string_view Device::promiscuous_for_good() const noexcept {
  if (!takes_mac_) return "the device does not take a MAC address";
  if (!takes_all_multicast_)
    return "the device cannot be told to receive all multicast, which neighbour discovery needs";
  return {};
}

Status Device::apply_promiscuous() {
  info_.promiscuous_wanted = settings_.promiscuous;
  info_.promiscuous_reason.clear();
  if (settings_.promiscuous)
    filter_.clear(info_.port);
  else
    info_.promiscuous_reason = filter_.apply(info_.port, wanted_filter_, info_.most_mac_filters);
  if (!settings_.promiscuous && info_.promiscuous_reason.empty())
    info_.promiscuous_reason = promiscuous_for_good();
  info_.mac_filters = filter_.size();
  const bool on = settings_.promiscuous || !info_.promiscuous_reason.empty();
  int error = 0;
  if (on != (rte_eth_promiscuous_get(info_.port) == 1))
    error = on ? rte_eth_promiscuous_enable(info_.port) : rte_eth_promiscuous_disable(info_.port);
  info_.promiscuous = rte_eth_promiscuous_get(info_.port) == 1;
  // It has no such mode either: a ring or a file, which filters nothing.
  if (error == -ENOTSUP && info_.promiscuous_reason == promiscuous_for_good())
    info_.promiscuous_reason.clear();
  if (error == 0 || on != settings_.promiscuous) return {};
  return fail(error == -ENOTSUP ? EOPNOTSUPP : -error, "{}: promiscuous {}: {} refuses it: {}",
              settings_.name, on ? "on" : "off", devargs_.device, std::strerror(-error));
}

void Device::watch_removal() {
  rte_eth_dev_callback_register(info_.port, RTE_ETH_EVENT_INTR_RMV, mark_removed, &removed_);
  if (is_pci(devargs_)) rte_dev_event_callback_register(devargs_.device.c_str(), mark_unplugged, &removed_);
}

void Device::look_for_removal() {
  if (info_.gone) return;
  if (removed_.load(std::memory_order_acquire)) {
    info_.gone = true;
    info_.gone_reason = fmt::format("{} was removed", devargs_.device);
  }
  char name[IF_NAMESIZE];
  if (kernel_ifindexes_.empty() || std::ranges::any_of(kernel_ifindexes_, [&](uint32_t ifindex) {
        return if_indextoname(ifindex, name) != nullptr || errno != ENXIO;
      }))
    return;
  info_.gone = true;
  info_.gone_reason = info_.kernel_interface.empty()
                          ? fmt::format("the kernel interfaces below {} were deleted", devargs_.device)
                          : fmt::format("kernel interface '{}' was deleted", info_.kernel_interface);
}

void Device::describe(const rte_eth_dev_info& offered) {
  device_ = offered.device;
  if (kernel_ifindexes_.empty() && offered.if_index != 0) {
    kernel_ifindexes_ = {offered.if_index};
    char name[IF_NAMESIZE];
    if (if_indextoname(offered.if_index, name) != nullptr) info_.kernel_interface = name;
  }
  info_.driver = offered.driver_name;
  info_.numa_node = rte_eth_dev_socket_id(info_.port);
  info_.mtu = settings_.mtu;
  info_.least_mtu = room_.least_mtu;
  info_.most_mtu = limits_.most_mtu;
  info_.mtu_by_tags = limits_.mtu_by_tags;
  info_.rx_queues = settings_.rx_queues;
  info_.tx_queues = settings_.tx_queues;
  info_.most_rx_queues = offered.max_rx_queues;
  info_.most_tx_queues = offered.max_tx_queues;
  if (ring_) {
    info_.rx_descriptors = info_.tx_descriptors = ring_->frames;
  } else {
    for (const auto& [what, wanted, got] :
         {std::tuple{"rx_descriptors", settings_.rx_descriptors, info_.rx_descriptors},
          std::tuple{"tx_descriptors", settings_.tx_descriptors, info_.tx_descriptors}})
      if (wanted != got)
        info_.notes.push_back(fmt::format("{}: {} became {}, which the device accepts", what, wanted, got));
  }
  if (info_.rx_queues > 1 && info_.rss_types.empty() && !ring_)
    info_.notes.emplace_back("the device has no RSS: its driver alone decides which queue gets a packet");
  warn_about_frames();
}

void Device::warn_about_frames() {
  if (is_packet_socket())
    info_.warnings.emplace_back(
        "net_af_packet delivers an 802.1ad outer tag as 802.1Q: use net_pcap or net_af_xdp where 802.1ad "
        "matters");
  if (devargs_.is_of("net_af_xdp"))
    info_.notes.emplace_back(
        "the driver does not give back the mbufs of its fill ring, 2,048 a queue, when it is closed");
  if (kernel_ && !kernel_->up)
    info_.warnings.push_back(
        fmt::format("{} is down: ip link set dev {} up", info_.kernel_interface, info_.kernel_interface));
  const uint32_t tagged = info_.mtu_by_tags[kMostTags];
  if (tagged >= info_.mtu) return;
  info_.notes.push_back(fmt::format("with {} tags IP packets of at most {} B fit", kMostTags, tagged));
  if (kernel_)
    info_.notes.back() += fmt::format(": ip link set dev {} mtu {} makes room", info_.kernel_interface,
                                      info_.mtu + kVlanTagBytes);
}

uint64_t Device::buffers_kept() const noexcept {
  return devargs_.is_of("net_af_xdp") ? kXdpBuffersKept * std::max(info_.rx_queues, info_.tx_queues) : 0;
}

void Device::refresh() {
  const EalErrorScope quiet;
  look_for_removal();
  if (info_.gone) {
    info_.link_up = false;
    return;
  }
  rte_eth_link link{};
  info_.link_up = true;
  if (rte_eth_link_get_nowait(info_.port, &link) == 0) {
    info_.link_up = link.link_status == RTE_ETH_LINK_UP;
    info_.full_duplex = link.link_duplex == RTE_ETH_LINK_FULL_DUPLEX;
    info_.speed_mbps = link.link_speed == RTE_ETH_SPEED_NUM_NONE ? kUnknownSpeed : link.link_speed;
  }
  // Drivers on a kernel interface say "up" whatever it is.
  if (kernel_) {
    const auto now = read_kernel_interface(info_.kernel_interface);
    info_.link_up = info_.link_up && now && now->up && now->running;
  }
  rte_eth_stats statistics{};
  if (rte_eth_stats_get(info_.port, &statistics) == 0)
    counters_ = {.rx_packets = statistics.ipackets,
                 .rx_bytes = statistics.ibytes,
                 .tx_packets = statistics.opackets,
                 .tx_bytes = statistics.obytes,
                 .imissed = statistics.imissed,
                 .rx_nombuf = statistics.rx_nombuf,
                 .ierrors = statistics.ierrors,
                 .oerrors = statistics.oerrors};
  if (ring_drops_) counters_.imissed += ring_drops_->read();
}

Status Device::set_mtu(uint32_t mtu) {
  FrameRoom room = room_;
  if (kernel_) {
    const auto now = read_kernel_interface(info_.kernel_interface);
    if (!now) return fail(now.error().code, "{}: {}", settings_.name, now.error().text);
    room.kernel_mtu = now->mtu;
  }
  const auto limits = plan_frames(mtu, room);
  if (!limits) return fail(limits.error().code, "{}: {}", settings_.name, limits.error().text);
  if (!keeps_driver_mtu()) {
    const EalErrorScope words;
    const int error = rte_eth_dev_set_mtu(info_.port, static_cast<uint16_t>(limits->device_mtu));
    if (error == -EBUSY)
      return fail(
          EBUSY,
          "{}: mtu {}: {} changes it only while it is stopped: set it in the configuration and restart",
          settings_.name, mtu, devargs_.device);
    if (error != 0 && error != -ENOTSUP)
      return fail(-error, "{}: mtu {}: {} refuses it: {}{}", settings_.name, mtu, devargs_.device,
                  std::strerror(-error), words.reason());
  }
  room_ = room;
  limits_ = *limits;
  info_.mtu = mtu;
  info_.most_mtu = limits_.most_mtu;
  info_.mtu_by_tags = limits_.mtu_by_tags;
  return {};
}

Status Device::set_mac(Mac mac) {
  if (is_multicast(mac) || mac == 0)
    return fail(EADDRNOTAVAIL, "{}: address {}: accepted unicast MAC addresses", settings_.name,
                format_mac(mac));
  rte_ether_addr address{};
  store_mac(address.addr_bytes, mac);
  const EalErrorScope words;
  if (shares_mac_with_kernel()) {
    info_.mac = mac;
    return {};
  }
  if (const int error = rte_eth_dev_default_mac_addr_set(info_.port, &address); error != 0)
    return fail(error == -ENOTSUP ? EOPNOTSUPP : -error, "{}: address {}: {} refuses it: {}{}",
                settings_.name, format_mac(mac), devargs_.device, std::strerror(-error), words.reason());
  info_.mac = mac;
  return {};
}

Status Device::set_promiscuous(bool on, const MacFilterRequest& filter) {
  const EalErrorScope quiet;
  const bool before = std::exchange(settings_.promiscuous, on);
  wanted_filter_ = filter;
  auto applied = apply_promiscuous();
  if (applied) return {};
  settings_.promiscuous = before;
  [[maybe_unused]] auto undone = apply_promiscuous();
  return applied;
}

void Device::set_filter(const MacFilterRequest& filter) {
  const EalErrorScope quiet;
  wanted_filter_ = filter;
  if (auto applied = apply_promiscuous(); !applied)
    log(LogLevel::warning, "port", "{}", applied.error().text);
}

ExtendedCounters Device::read_xstats() const {
  const EalErrorScope quiet;
  ExtendedCounters counters;
  const int count = rte_eth_xstats_get_names(info_.port, nullptr, 0);
  if (count <= 0) return counters;
  std::vector<rte_eth_xstat_name> names(static_cast<size_t>(count));
  std::vector<rte_eth_xstat> values(static_cast<size_t>(count));
  const auto most = static_cast<unsigned>(count);
  if (rte_eth_xstats_get_names(info_.port, names.data(), most) != count ||
      rte_eth_xstats_get(info_.port, values.data(), most) != count)
    return counters;
  for (const rte_eth_xstat& value : values)
    if (value.id < names.size()) counters.emplace_back(names[value.id].name, value.value);
  return counters;
}

// What was sent into a net_ring waits in the ring as mbufs of ours, and the driver frees the ring without
// them.
void Device::drain_ring() {
  std::array<rte_mbuf*, 64> mbufs;
  for (uint16_t queue = 0; queue < info_.rx_queues; ++queue)
    while (const uint16_t count = rte_eth_rx_burst(info_.port, queue, mbufs.data(), mbufs.size()))
      rte_pktmbuf_free_bulk(mbufs.data(), count);
}

Device::~Device() {
  if (info_.port == kNoPort) return;
  rte_eth_dev_callback_unregister(info_.port, RTE_ETH_EVENT_INTR_RMV, mark_removed, &removed_);
  if (is_pci(devargs_)) rte_dev_event_callback_unregister(devargs_.device.c_str(), mark_unplugged, &removed_);
  if (started_ && devargs_.is_of("net_ring")) drain_ring();
  rte_eth_dev_info offered{};
  if (device_ == nullptr && rte_eth_dev_info_get(info_.port, &offered) == 0) device_ = offered.device;
  if (started_) {
    if (kernel_ && !info_.gone && !kernel_->promiscuous && info_.promiscuous)
      rte_eth_promiscuous_disable(info_.port);
    if (const int error = rte_eth_dev_stop(info_.port); error != 0)
      log(LogLevel::warning, "port", "{}: {} does not stop: {}", settings_.name, info_.device,
          std::strerror(-error));
  }
  if (const int error = rte_eth_dev_close(info_.port); error != 0)
    log(LogLevel::warning, "port", "{}: {} does not close: {}", settings_.name, info_.device,
        std::strerror(-error));
  // One PCI device may carry several ethdevs, each a port of its own.
  uint16_t other = 0;
  RTE_ETH_FOREACH_DEV_OF(other, device_) return;
  if (device_ != nullptr)
    if (const int error = rte_dev_remove(device_); error != 0)
      log(LogLevel::warning, "port", "{}: {} can not be removed: {}", settings_.name, info_.device,
          std::strerror(-error));
}

}  // namespace mayfly
