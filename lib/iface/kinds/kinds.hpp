// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// The one object of each interface kind; kinds.cpp lists them.

namespace mayfly {

class InterfaceKind;

const InterfaceKind& port_kind();   // an ethdev port's own interface: untagged frames
const InterfaceKind& vlan_kind();   // 802.1Q / 802.1ad tagged frames of a port, one or two tags
const InterfaceKind& dummy_kind();  // swallows what is sent to it; carries addresses
const InterfaceKind& veth_kind();   // one of two ends: what is sent to one is received by the other

}  // namespace mayfly
