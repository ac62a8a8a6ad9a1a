// SPDX-License-Identifier: BSD-3-Clause
#include "port/cpu_plan.hpp"

#include <sched.h>

#include <algorithm>

namespace mayfly {
namespace {

bool contains(const std::vector<int>& cpus, int cpu) {
  return std::ranges::find(cpus, cpu) != cpus.end();
}

}  // namespace

std::vector<int> allowed_cpus() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  std::vector<int> cpus;
  if (sched_getaffinity(0, sizeof mask, &mask) != 0) return {0};
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &mask)) cpus.push_back(cpu);
  return cpus;
}

std::string format_cpus(const std::vector<int>& cpus) {
  std::string text;
  for (size_t first = 0; first < cpus.size();) {
    size_t last = first;
    while (last + 1 < cpus.size() && cpus[last + 1] == cpus[last] + 1) ++last;
    text += fmt::format("{}{}", text.empty() ? "" : ",", cpus[first]);
    if (last > first) text += fmt::format("-{}", cpus[last]);
    first = last + 1;
  }
  return text;
}

Result<CpuPlan> plan_cpus(uint32_t workers, const std::vector<int>& wanted, const std::vector<int>& allowed) {
  if (workers == 0) return fail(EINVAL, "workers.count 0: accepted 1 and above");
  if (allowed.empty()) return fail(EINVAL, "this process may run on no CPU");
  if (!wanted.empty() && wanted.size() != workers)
    return fail(EINVAL, "workers.cpus: {} CPUs for {} workers: name one a worker", wanted.size(), workers);
  for (const int cpu : wanted)
    if (!contains(allowed, cpu))
      return fail(EINVAL, "workers.cpus: CPU {}: accepted {} (the CPUs this process may run on)", cpu,
                  format_cpus(allowed));

  CpuPlan plan;
  plan.worker_cpus = wanted;
  if (wanted.empty()) {
    const size_t usable = allowed.size() > 1 ? allowed.size() - 1 : 1;
    const size_t used = std::min<size_t>(workers, usable);
    for (uint32_t worker = 0; worker < workers; ++worker)
      plan.worker_cpus.push_back(allowed[allowed.size() - used + worker % used]);
  }
  for (const int cpu : allowed)
    if (!contains(plan.worker_cpus, cpu)) plan.control_cpus.push_back(cpu);
  if (allowed.size() < size_t{workers} + 1)
    plan.warning = fmt::format(
        "{} CPU{} ({}) for {} worker{} and control: they share, expect lower rates and loss", allowed.size(),
        allowed.size() == 1 ? "" : "s", format_cpus(allowed), workers, workers == 1 ? "" : "s");
  else if (plan.control_cpus.empty())
    plan.warning =
        fmt::format("workers.cpus takes every CPU ({}): control shares them, expect lower rates and loss",
                    format_cpus(allowed));
  if (plan.control_cpus.empty()) plan.control_cpus = allowed;
  return plan;
}

}  // namespace mayfly
