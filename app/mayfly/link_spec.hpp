// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// The words of the command line that describe an interface, for "link add" and for "link bulk add", and
// how kinds are printed. Kinds and their parameters come from iface/kind_parameters.hpp alone.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "control/link_description.hpp"
#include "words.hpp"

namespace mayfly::cli {

using LinkSpec = LinkDescription;
using PeerSpec = PeerDescription;

// Takes one part of a description; false when the next word begins none. Ranges only where allowed.
bool take_link_word(Words& words, bool ranges_allowed, LinkSpec& spec);
// "vlan: id 1..4094, [inner 1..4094], [protocol 802.1Q|802.1ad]", a line for each kind.
std::string describe_kinds();
// IFLA_INFO_DATA of an answer: " protocol 802.1Q id 100", and "88a8:100.200".
std::string format_parameters(const KindDescription& kind, const Attributes& data);
std::string format_tags(const KindDescription& kind, const Attributes& data);
// A parameter in an answer, in host order.
std::optional<uint16_t> parameter_value(const KindParameter& parameter, const Attributes& data);

}  // namespace mayfly::cli
