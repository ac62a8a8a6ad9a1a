// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// A test process with an EAL, an mbuf pool and, when it is root, a network namespace of its own with veth
// pairs.

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>

#include "port/cpu_plan.hpp"
#include "port/eal.hpp"
#include "port/mbuf_pool.hpp"

namespace mayfly {

class PortTestProcess {
 public:
  static inline MbufPool* pool = nullptr;
  static inline bool private_network = false;
  static inline std::filesystem::path directory;  // for pcap files

  static int run(int argc, char** argv, uint32_t workers) {
    testing::InitGoogleTest(&argc, argv);
    private_network = geteuid() == 0 && unshare(CLONE_NEWNET) == 0 && sh("ip link set dev lo up");
    directory = std::filesystem::temp_directory_path() / fmt::format("mayfly-test-port-{}", getpid());
    std::filesystem::create_directories(directory);
    const int failures = run_with_eal(workers);
    std::filesystem::remove_all(directory);
    return failures;
  }

  static bool sh(const std::string& command) { return std::system(command.c_str()) == 0; }

  // A file of one captured 60-byte frame.
  static std::string pcap_file(const std::string& name) {
    const std::string path = directory / name;
    FILE* file = std::fopen(path.c_str(), "wb");
    const uint32_t header[6] = {0xa1b2c3d4, 2 | 4 << 16, 0, 0, 65'535, 1};
    const uint32_t record[4] = {0, 0, 60, 60};
    const char frame[60] = {};
    std::fwrite(header, sizeof header, 1, file);
    std::fwrite(record, sizeof record, 1, file);
    std::fwrite(frame, sizeof frame, 1, file);
    std::fclose(file);
    return path;
  }

 private:
  static int run_with_eal(uint32_t workers) {
    const auto plan = plan_cpus(workers, {}, allowed_cpus());
    EalSettings settings;
    settings.memory_bytes = uint64_t{256} << 20;
    settings.worker_cpus = plan->worker_cpus;
    settings.control_cpus = plan->control_cpus;
    auto eal = Eal::start(settings);
    if (!eal) {
      std::fprintf(stderr, "%s\n", eal.error().text.c_str());
      return 1;
    }
    const std::string runtime_directory = (*eal)->runtime_directory();
    MbufPoolSettings mbufs;
    mbufs.count = 4'096;
    auto created = MbufPool::create("test", mbufs);
    if (!created) {
      std::fprintf(stderr, "%s\n", created.error().text.c_str());
      return 1;
    }
    pool = created->get();
    int failures = RUN_ALL_TESTS();
    if (pool->available() != pool->count()) {
      std::fprintf(stderr, "mbufs are missing: %u of %u\n", pool->count() - pool->available(), pool->count());
      failures = 1;
    }
    created->reset();
    eal->reset();
    if (runtime_directory.empty() || std::filesystem::exists(runtime_directory)) {
      std::fprintf(stderr, "the EAL's directory is still there: '%s'\n", runtime_directory.c_str());
      failures = 1;
    }
    return failures;
  }
};

}  // namespace mayfly
