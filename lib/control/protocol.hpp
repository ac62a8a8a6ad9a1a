// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// The control protocol's numbers: what Mayfly adds to rtnetlink. docs/protocol.md explains every message.
//
// A SOCK_SEQPACKET Unix socket carries netlink framing in both directions: a datagram (at most kMaxDatagram
// bytes) is a row of nlmsghdr messages. The first message of a connection is a hello; after it the connection
// speaks one family:
//   route    the kernel's rtnetlink messages (LINK, ADDR, ROUTE, NEIGH) with the kernel's own UAPI headers,
//   plus the
//            attributes below at kAttrVendor and above;
//   generic  genlmsghdr messages of the family kGenericFamilyId with the commands and attributes below.
// Integers are host order, addresses network order, as in netlink. Strings are NUL-terminated. Unknown
// attributes are refused (EINVAL), as strict netlink checking does.

#include <linux/netlink.h>

#include <cstddef>
#include <cstdint>

namespace mayfly::protocol {

constexpr uint32_t kVersion = 1;
constexpr size_t kMaxDatagram = 65'536;
constexpr const char* kDefaultSocket = "/run/mayfly/mayfly.sock";

// nlmsg_type of the hello, in the range netlink reserves for control messages (below NLMSG_MIN_TYPE).
constexpr uint16_t kMsgHello = 0x0e;
// nlmsg_type of every message of the generic family.
constexpr uint16_t kGenericFamilyId = 0x20;
constexpr uint8_t kGenericVersion = 1;

// nlmsg_flags, next to the kernel's: not executed, but answered with ECANCELED, when the chained message
// before it on this connection failed or was cancelled. A message without the flag starts anew. It is how a
// client that sends ahead still stops at the first error.
constexpr uint16_t kFlagChained = 0x1000;

// Attributes of the hello message (no fixed header after nlmsghdr).
enum HelloAttribute : uint16_t {
  kHelloVersion = 1,  // u32, both ways
  kHelloFamily,       // u32, request: NETLINK_ROUTE or NETLINK_GENERIC
  kHelloNetns,        // string, request, optional: the namespace this connection works in ("default")
  kHelloClient,       // string, request, optional: the client's name for the daemon's log
  kHelloBootId,       // string, answer: new with every start of the daemon
  kHelloDaemon,       // string, answer: "mayflyd 0.1.0"
  kHelloPid,          // u32, answer
  kHelloGroups,       // u32, request, family route: RTMGRP_LINK: events of interfaces, with sequence number 0
};

// Attributes that Mayfly adds to rtnetlink messages. The same numbers in LINK, ADDR, ROUTE and NEIGH
// messages.
constexpr uint16_t kAttrVendor = 0x1000;
enum VendorAttribute : uint16_t {
  kAttrDevice = kAttrVendor,  // string: the device's name, instead of an ifindex (LINK: the parent's name)
  kAttrId,                    // u64, answer: never reused, unlike the ifindex
  kAttrCreated,               // u64, answer: ns since the epoch
  kAttrNetns,                 // string; request: where a new interface goes, or an existing one is moved
  kAttrSelector,              // nested SelectorAttribute, request: dump what matches
  kAttrDrops,                 // nested, answer: one kAttrDrop per reason
  kAttrDrop,                  // nested: kReasonName, kReasonTotal of ReasonAttribute
  kAttrChildren,              // u32, answer: interfaces whose parent this is
  kAttrMerged,                // u64, event: so many interfaces, each not told of
  kAttrRpFilter,     // u8: 0 off, 1 strict: a source must be routed back by the interface it came in by
  kAttrProxyArp,     // u8: 1: answers ARP for what is routed by other interfaces
  kAttrProxyNd,      // u8: 1: the same for neighbour solicitations
  kAttrAddrGenMode,  // u8: as IFLA_INET6_ADDR_GEN_MODE: 0 eui64, 1 none: no link-local address by itself
  kAttrUnnumbered,   // string: the interface whose addresses it uses as its own; request: "" ends that
  kAttrPeer,         // string, answer: the other end of a pair
  kAttrPeerNetns,    // string, answer: the namespace of the other end
  kAttrLinkNetns,    // string, answer: the namespace of the parent, where it is another one
  kAttrRouteNumber,  // u32, answer: where several routes have the prefix, a number of this one
  kAttrRouteBehind,  // u32, answer: the number of the route that is used before this one
};
// Attribute inside IFLA_INFO_DATA of kind vlan, next to the kernel's IFLA_VLAN_ID (u16) and
// IFLA_VLAN_PROTOCOL (u16, network order): the inner tag of a QinQ interface whose parent is the port.
constexpr uint16_t kVlanInner = 64;  // u16; kVlanInnerAttribute of lib/iface/kind_parameters.hpp

// Conditions of a selector, ANDed. An empty selector is refused wherever something would be changed.
enum SelectorAttribute : uint16_t {
  kSelectGroup = 1,   // u32
  kSelectParent,      // string: name
  kSelectKind,        // string
  kSelectOuterFirst,  // u16: vlan A[-B]; both bounds are present
  kSelectOuterLast,   // u16
  kSelectInnerFirst,  // u16: inner C[-D]
  kSelectInnerLast,   // u16
  kSelectAdminUp,     // u8: 1 up, 0 down
  kSelectLimit,       // u64: stop after this many (dumps only)
};

enum Command : uint8_t {
  kCmdBatchBegin = 1,  // until kCmdBatchEnd everything deleted on this connection dies in one teardown batch
  kCmdBatchEnd,
  kCmdLinkBulkAdd,
  kCmdLinkBulkNames,  // appends names to the list that the next kCmdLinkBulkDel with kBulkListed deletes
  kCmdLinkBulkDel,
  kCmdBulkResult,    // answer to the bulk commands, before their acknowledgement
  kCmdBulkProgress,  // sent meanwhile, every 200 ms, to whoever asked (kBulkWantProgress)
  kCmdLinkCount,     // SelectorAttribute inside kBulkSelector (may be absent: all) -> kValueCount
  kCmdLinkWhich,     // kWhich* -> kWhich*
  kCmdPortShow,      // dump: one message a port
  kCmdReclaimShow,
  kCmdReclaimWait,  // acknowledged when all that was retired before is reclaimed; kReclaimTimeout
  kCmdStats,
  kCmdDrops,  // dump: one message a reason
  kCmdStatus,
  kCmdPortAdd,      // kPortName, kPortDevargs, options; acknowledged when the device runs
  kCmdPortDel,      // kPortName; with its interface and what is stacked on it; acknowledged when it is closed
  kCmdPortXstats,   // kPortName -> kPortXstat
  kCmdNetnsAdd,     // kNetnsName
  kCmdNetnsDel,     // kNetnsName: with everything in it; its ports go to `default`, down
  kCmdNetnsRename,  // kNetnsName, kNetnsNewName
  kCmdNetnsShow,    // dump: one message a namespace; kNetnsName: that one
  kCmdLinkBulkItems,  // appends interfaces (kBulkItem) to the list that the next kCmdLinkBulkAdd with
                      // kBulkListed makes
  kCmdConfigShow,     // dump: kConfigSettings, then kConfigFile and kConfigText, in pieces
  kCmdConfigBegin,    // kConfigFile: takes the lock of the configuration until the connection ends; EBUSY
  kCmdConfigChange,   // one change, or more of the messages of the last one (kConfigContinued)
  kCmdConfigText,     // kConfigText: a piece of the text that is kept once the changes are made
  kCmdConfigApply,    // makes all changes or none
  kCmdStages,         // dump: one message a worker
  kCmdStagesSet,      // kStagesOn, kStagesReset
};

enum BulkAttribute : uint16_t {
  kBulkName = 1,      // string: pattern with {} (counts from 0), {parent}, {outer}, {inner}, {n:06}, %d
  kBulkCount,         // u64: how many; default: the product of the ranges
  kBulkTemplate,      // nested: the attributes of RTM_NEWLINK that all of them share (IFLA_LINKINFO included)
  kBulkUp,            // flag: created up
  kBulkRange,         // nested kRange*, repeated: parameters of the kind; the last one varies fastest
  kRangeParameter,    // u16: number of the parameter inside IFLA_INFO_DATA
  kRangeFirst,        // u32
  kRangeLast,         // u32
  kBulkForce,         // flag: do what is possible, report the rest; otherwise all or nothing
  kBulkDryRun,        // flag: only count
  kBulkSelector,      // nested SelectorAttribute
  kBulkListed,        // flag: the names sent with kCmdLinkBulkNames
  kBulkNameEntry,     // string, repeated (kCmdLinkBulkNames)
  kBulkWantProgress,  // flag
  kBulkMatched,       // u64, answer
  kBulkChanged,       // u64, answer
  kBulkFailed,        // u64, answer
  kBulkDuration,      // u64 ns, answer: inside the daemon
  kBulkToReclaim,     // u64 bytes, answer: retired by this request
  kBulkFailure,       // nested, repeated, the first ten: kFailureName, kFailureErrno, kFailureText
  kFailureName,       // string
  kFailureErrno,      // u32
  kFailureText,       // string
  kBulkDone,          // u64 (progress)
  kBulkTotal,         // u64 (progress)
  kValueCount,        // u64 (kCmdLinkCount)
  kBulkFlush,         // flag (kCmdLinkBulkDel): every interface of the namespace, its ports excepted
  // kCmdLinkBulkAdd and each kBulkItem:
  kBulkDown,        // flag: down, where kBulkReplace finds it up
  kBulkAddress,     // nested, repeated: kDressAddress, kDressLength, kDressStep, kDressStepShift, kDressFlags
  kBulkRoute,       // nested, repeated: kDressAddress, kDressLength, kDressStep, kDressStepShift
  kBulkNeighbour,   // nested, repeated: all but kDressLength and kDressFlags
  kDressAddress,    // 4 or 16 bytes: that of member 0
  kDressLength,     // u8; default: the whole address
  kDressStep,       // u64, times 2^kDressStepShift: from one member's address to the next one's; default: 0
  kDressStepShift,  // u8
  kDressLladdr,     // 6 bytes: that of member 0
  kDressLladdrStep,  // u64; default: 0
  kDressFlags,       // u32: IFA_F_NODAD
  kBulkItem,  // nested, repeated (kCmdLinkBulkItems): kBulkName, kBulkTemplate, kBulkUp, kBulkDown, dressing
  kBulkReplace,      // flag (kCmdLinkBulkAdd): what is there as asked for stays, what is there otherwise is
                     // changed
  kBulkSweepGroup,   // u32, with kBulkReplace: interfaces of this group that are not members are deleted
  kBulkCreated,      // u64, answer to kBulkReplace
  kBulkKept,         // u64, answer to kBulkReplace
  kBulkDeleted,      // u64, answer to kBulkReplace
  kFailureMember,    // u64: which member (item) it was, counted from 0; absent: none of them
  kBulkSkipMissing,  // flag (kCmdLinkBulkDel): names that no interface has are no failure
};

// The longest text of a configuration. A dump has a line for each interface, address, route and neighbour, of
// about 80 bytes: a million subscribers with an address, a route and a neighbour of either family are half of
// this.
constexpr size_t kMostConfigBytes = size_t{512} << 20;

enum ConfigAttribute : uint16_t {
  kConfigFile = 1,    // string: as errors name it
  kConfigSettings,    // string, answer: a piece of the daemon's settings as YAML
  kConfigText,        // string: a piece of the file
  kConfigContinued,   // flag
  kConfigNetns,       // string: where the messages of the change are sent
  kConfigUndoNetns,   // string: where those that undo it are; default: the same
  kConfigFamily,      // u32: NETLINK_ROUTE or NETLINK_GENERIC
  kConfigUndoFamily,  // u32; default: the same
  kConfigRemoval,     // flag: what is gone already is no failure
  kConfigWhere,       // string: "mayfly.yaml:12"
  kConfigWhat,        // string: "addr add 10.0.0.1/24 dev port0"
  kConfigMessage,     // a whole netlink message, repeated
  kConfigUndo,        // likewise
};

enum WhichAttribute : uint16_t {
  kWhichPort = 1,  // string: name of the parent port
  kWhichProtocol,  // u16 host order: 0x8100 or 0x88a8; default: both are tried
  kWhichOuter,     // u16; absent: untagged
  kWhichInner,     // u16; absent: one tag
  kWhichName,      // string, answer: the interface; absent when nobody owns the tags
  kWhichIfindex,   // u32, answer
  kWhichDrop,      // string, answer: the reason a packet with these tags is dropped with
};

enum NetnsAttribute : uint16_t {
  kNetnsName = 1,    // string
  kNetnsNewName,     // string
  kNetnsId,          // u64, answer: never reused
  kNetnsInterfaces,  // u32, answer
  kNetnsRoutes,      // u32, answer
};

enum PortAttribute : uint16_t {
  kPortName = 1,       // string
  kPortIfindex,        // u32
  kPortDevargs,        // string: as they were given
  kPortDriver,         // string
  kPortNumaNode,       // s32, -1: none
  kPortLinkUp,         // u8
  kPortSpeed,          // u32 Mbit/s, 0: unknown
  kPortMtu,            // u32
  kPortMac,            // 6 bytes
  kPortRxQueues,       // u32
  kPortTxQueues,       // u32
  kPortRxDescriptors,  // u32
  kPortTxDescriptors,  // u32
  kPortQueue,          // nested, repeated: kPortQueueIndex u32, kPortQueueWorker u32
  kPortQueueIndex,
  kPortQueueWorker,
  kPortPromiscuous,         // u8
  kPortImissed,             // u64: the device had no descriptor
  kPortIerrors,             // u64
  kPortRxNombuf,            // u64: no mbuf was free
  kPortOerrors,             // u64
  kPortState,               // string: "running", "starting", "stopping", "failed", "gone"
  kPortReason,              // string: why it failed or is gone
  kPortFullDuplex,          // u8
  kPortLeastMtu,            // u32
  kPortMostMtu,             // u32
  kPortMtuByTags,           // binary: u32[3], the longest IP packet with 0, 1 and 2 tags
  kPortMostRxQueues,        // u32
  kPortMostTxQueues,        // u32
  kPortKernelInterface,     // string: what the device sits on in the kernel; absent: nothing
  kPortRxOffloads,          // string: in use, by DPDK's names, with blanks between
  kPortTxOffloads,          // string
  kPortRssTypes,            // string: in use, with blanks between; empty: no RSS
  kPortRssOffered,          // string: what the device could do
  kPortPromiscuousWanted,   // u8
  kPortPromiscuousReason,   // string: why it is promiscuous although that is not wanted
  kPortMacFilters,          // u32: addresses beside its own that the device lets pass
  kPortMostMacFilters,      // u32
  kPortRxPackets,           // u64: the device's own counters
  kPortRxBytes,             // u64
  kPortTxPackets,           // u64
  kPortTxBytes,             // u64
  kPortNote,                // nested, repeated: kPortText
  kPortWarning,             // nested, repeated: kPortText
  kPortText,                // string
  kPortXstat,               // nested, repeated: kPortXstatName, kPortXstatValue
  kPortXstatName,           // string: the driver's
  kPortXstatValue,          // u64
  kPortDriverDevargs,       // string: as the driver got them, where that differs from kPortDevargs
  kPortAskedRxDescriptors,  // u32: what was asked for
  kPortAskedTxDescriptors,  // u32
  kPortFirstMac,            // 6 bytes: what it had when it was opened
};

enum ReclaimAttribute : uint16_t {
  kReclaimBatches = 1,       // u64
  kReclaimRetired,           // u64 objects since start
  kReclaimReclaimed,         // u64 objects since start
  kReclaimBacklogObjects,    // u64
  kReclaimBacklogBytes,      // u64
  kReclaimHighObjects,       // u64
  kReclaimHighBytes,         // u64
  kReclaimLastBatch,         // u64 objects
  kReclaimLastGrace,         // u64 ns
  kReclaimLastDismantle,     // u64 ns
  kReclaimGraceHistogram,    // binary: u64[20], bucket k counts [2^k, 2^(k+1)) us
  kReclaimWaitingCount,      // u64 objects
  kReclaimWaiting,           // nested, repeated (the first 16): kReclaimObject .. kReclaimHolderWhat
  kReclaimObject,            // string
  kReclaimAge,               // u64 ns
  kReclaimRetryIn,           // u64 ns
  kReclaimHolderWorker,      // u32
  kReclaimHolderReferences,  // u64
  kReclaimHolderWhat,        // string
  kReclaimTimeout,           // u64 ns, request of kCmdReclaimWait; default 60 s
  kReclaimPolicy,            // string: "block" or "fail"
  kReclaimWorkers,           // u32
  kReclaimGraceRunning,      // u64 ns: how long the present grace period has lasted; absent: none runs
};

enum ReasonAttribute : uint16_t {
  kReasonName = 1,   // string: "unknown_tag"
  kReasonStage,      // string: "classify"
  kReasonTotal,      // u64
  kReasonPerSecond,  // u64: over the last second
  kReasonLastSeen,   // u64 ns since the epoch; absent: never
  kReasonTopName,    // string: the interface that lost most; absent when none is known
  kReasonTopCount,   // u64
  kReasonHint,       // string: what to look at
};

enum StatsAttribute : uint16_t {
  kStatsRx = 1,             // u64 packets, all workers
  kStatsOriginated,         // u64: made by Mayfly (ARP requests)
  kStatsTx,                 // u64
  kStatsDrops,              // u64
  kStatsPunted,             // u64: consumed by the control plane (ARP replies)
  kStatsParked,             // u64: waiting for a neighbour
  kStatsWorker,             // nested, repeated: kStatsWorkerIndex and the same numbers
  kStatsWorkerIndex,        // u32
  kStatsLoops,              // u64
  kStatsBusyLoops,          // u64: loops that met a packet
  kStatsSleeps,             // u64
  kStatsRxBytes,            // u64
  kStatsTxBytes,            // u64
  kStatsIcmpErrorsSent,     // u64: ICMP and ICMPv6 errors, part of kStatsOriginated
  kStatsIcmpErrorsLimited,  // u64: not made, to keep to the rate
  kStatsIcmpErrorsUnsent,   // u64: not made for want of a route, of a source address or of an mbuf
  kStatsVethCrossings,      // u64: each is in kStatsRx and in kStatsTx
};

// Clocks are those of the TSC. What is counted: stats/stage_counters.hpp.
enum StagesAttribute : uint16_t {
  kStagesOn = 1,   // u8: whether stages are counted; turned on, from nothing
  kStagesReset,    // flag, request: from nothing
  kStagesCounted,  // u64 ns: for how long
  kStagesClockHz,  // u64: clocks a second
  kStagesWorker,   // u32
  kStagesStage,    // nested, repeated: kStageName .. kStageClocks, in the order a packet meets them
  kStageName,      // string: "look_up"
  kStageKind,      // u8: 0 work for packets, 1 a device's burst of them, 2 upkeep, 3 idle
  kStageVectors,   // u64; upkeep and idle: times
  kStagePackets,   // u64; 0 for upkeep and idle
  kStageClocks,    // u64
};

enum StatusAttribute : uint16_t {
  kStatusDaemon = 1,       // string
  kStatusBootId,           // string
  kStatusPid,              // u32
  kStatusUptime,           // u64 ns
  kStatusWorkers,          // u32
  kStatusIdle,             // string: "adaptive" or "poll"
  kStatusHugepages,        // u8
  kStatusPorts,            // u32
  kStatusInterfaces,       // u64
  kStatusInterfacesLimit,  // u64
  kStatusRoutes,           // u64
  kStatusNeighbours,       // u64
  kStatusAddresses,        // u64
  kStatusMbufs,            // u64: in the pool
  kStatusMbufsFree,        // u64
  kStatusTableBytes,       // u64: memory held by tables and pools
  kStatusBacklogObjects,   // u64
  kStatusClients,          // u32
  kStatusSliceMax,         // u64 ns: the longest time one slice held the control thread
  kStatusSocket,           // string
  kStatusBlocks,     // u64: RCU blocks in use (FIB nodes, neighbour tables, address lists, demux chunks)
  kStatusImbalance,  // string: which worker has much more than the others; absent: none has
};

}  // namespace mayfly::protocol
