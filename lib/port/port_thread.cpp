// SPDX-License-Identifier: BSD-3-Clause
#include "port/port_thread.hpp"

#include <pthread.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cstring>
#include <system_error>

#include "base/check.hpp"
#include "base/log.hpp"
#include "port/device.hpp"

namespace mayfly {
namespace {

void settle_thread(const std::vector<int>& cpus) {
  pthread_setname_np(pthread_self(), "mayfly-port");
  if (cpus.empty()) return;
  cpu_set_t mask;
  CPU_ZERO(&mask);
  for (const int cpu : cpus) CPU_SET(cpu, &mask);
  if (const int error = pthread_setaffinity_np(pthread_self(), sizeof mask, &mask); error != 0)
    log(LogLevel::warning, "port", "the port thread can not leave the workers' CPUs: {}",
        std::strerror(error));
}

}  // namespace

PortThread::PortThread(rte_mempool& pool, std::vector<int> cpus) : pool_(pool), cpus_(std::move(cpus)) {
  sem_init(&work_, 0, 0);
}

PortThread::~PortThread() {
  stop();
  if (completion_fd_ >= 0) close(completion_fd_);
  sem_destroy(&work_);
}

Status PortThread::start() {
  completion_fd_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (completion_fd_ < 0) return fail(errno, "the port thread: eventfd: {}", std::strerror(errno));
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error& error) {
    return fail(EAGAIN, "the port thread does not start: {}", error.what());
  }
  return {};
}

void PortThread::stop() {
  if (!thread_.joinable()) return;
  stopping_.store(true, std::memory_order_release);
  sem_post(&work_);
  thread_.join();
}

void PortThread::post(PortRequest request) {
  if (stopping_.load(std::memory_order_relaxed)) return;
  requests_.push(std::move(request));
  sem_post(&work_);
}

bool PortThread::take(PortReply* reply) {
  if (replies_.pop(reply)) return true;
  // Cleared only when nothing is left, then looked at again: a reply may have arrived in between.
  eventfd_t count = 0;
  eventfd_read(completion_fd_, &count);
  return replies_.pop(reply);
}

void PortThread::reply(PortReply reply) {
  replies_.push(std::move(reply));
  eventfd_write(completion_fd_, 1);
}

void PortThread::run() {
  settle_thread(cpus_);
  while (true) {
    PortRequest request;
    if (next(&request)) {
      reply(serve(request));
    } else if (stopping_.load(std::memory_order_acquire)) {
      break;
    } else {
      while (sem_wait(&work_) != 0) continue;
    }
  }
  while (!devices_.empty()) close_device(devices_.begin()->first);
}

void PortThread::close_device(uint32_t slot) {
  if (const Device* device = device_of(slot); device != nullptr)
    buffers_kept_.fetch_add(device->buffers_kept(), std::memory_order_relaxed);
  devices_.erase(slot);
}

PortReply PortThread::serve(const PortRequest& request) {
  PortReply reply;
  reply.type = request.type;
  reply.slot = request.slot;
  reply.cookie = request.cookie;
  if (request.type == PortRequest::Type::add) {
    reply.result = serve_add(request);
  } else if (request.type == PortRequest::Type::remove) {
    close_device(request.slot);
  } else if (Device* device = device_of(request.slot); device == nullptr) {
    reply.result = fail(ENODEV, "the device is not open");
  } else if (request.type == PortRequest::Type::set_mtu) {
    reply.result = device->set_mtu(request.mtu);
  } else if (request.type == PortRequest::Type::set_mac) {
    reply.result = device->set_mac(request.mac);
  } else if (request.type == PortRequest::Type::set_promiscuous) {
    reply.result = device->set_promiscuous(request.promiscuous, request.filter);
  } else if (request.type == PortRequest::Type::set_filter) {
    device->set_filter(request.filter);
  } else if (request.type == PortRequest::Type::xstats) {
    reply.xstats = device->read_xstats();
  } else {
    device->refresh();
  }
  if (const Device* device = device_of(request.slot); device != nullptr) {
    reply.info = device->info();
    reply.counters = device->counters();
  }
  return reply;
}

Status PortThread::serve_add(const PortRequest& request) {
  MAYFLY_CHECK(device_of(request.slot) == nullptr, "a port slot was used twice");
  auto opened = Device::open(request.settings, pool_);
  if (!opened) return std::unexpected(opened.error());
  devices_[request.slot] = std::move(*opened);
  return {};
}

Device* PortThread::device_of(uint32_t slot) noexcept {
  const auto found = devices_.find(slot);
  return found == devices_.end() ? nullptr : found->second.get();
}

}  // namespace mayfly
