// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// What LINK messages and the template of a bulk create have in common: their attributes, and turning them
// into an InterfaceSpec or a Selector. Control thread; the views in the results point into the message.

#include <optional>
#include <span>

#include "control/dataplane.hpp"
#include "control/request_attributes.hpp"
#include "iface/interface_kind.hpp"
#include "iface/selector.hpp"

namespace mayfly {

std::span<const AttributeSpec> link_attribute_specs() noexcept;

// The interface a request means by ifindex or, when that is 0, by name; ENODEV with a text.
Result<uint32_t> find_interface(const Dataplane& dataplane, const Netns& netns, uint32_t ifindex,
                                std::optional<std::string_view> name);

// The namespace of kAttrNetns, otherwise `netns`; ENOENT, and EBUSY when it is being deleted.
Result<Netns*> find_target_netns(const Dataplane& dataplane, Netns& netns,
                                 const RequestAttributes& attributes);

// Each of Interface::kSettings with its attribute, a u8 that is 1 where the flag is set.
struct LinkSetting {
  uint16_t attribute;
  uint32_t flag;
  std::string_view word;
  std::string_view values;
};
std::span<const LinkSetting> link_settings() noexcept;

// Which of Interface::kSettings a request names, and those of them that it switches on.
struct SettingsChange {
  uint32_t named = 0;
  uint32_t on = 0;
};
Result<SettingsChange> parse_settings(const RequestAttributes& attributes);

// The interface of kAttrUnnumbered in this namespace, kNoInterface for none; ENODEV.
Result<uint32_t> parse_unnumbered(const Dataplane& dataplane, const Netns& netns,
                                  const RequestAttributes& attributes);

// The values of a kind's parameters out of IFLA_INFO_DATA. EINVAL, ERANGE with the parameter's word.
Result<KindValues> parse_kind_values(const KindDescription& kind, const nlattr* info_data);

// EINVAL when a parameter that the kind requires has no value.
Status check_required(const KindDescription& kind, const KindValues& values);

// Everything but the name; in a template, required parameters may be missing. EOPNOTSUPP for an unknown kind.
Result<InterfaceSpec> parse_link_template(const Dataplane& dataplane, Netns& netns,
                                          const RequestAttributes& attributes);
Result<InterfaceSpec> parse_link_spec(const Dataplane& dataplane, Netns& netns,
                                      const RequestAttributes& attributes);

// A nested selector. ENODEV for an unknown parent.
Result<Selector> parse_selector(const Dataplane& dataplane, const Netns& netns, const nlattr* nested,
                                uint64_t* limit = nullptr);
// "group 7 parent port0": for logs.
std::string describe_selector(const Dataplane& dataplane, const Selector& selector);

}  // namespace mayfly
