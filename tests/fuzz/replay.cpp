// SPDX-License-Identifier: BSD-3-Clause
// Feeds the files of the given directories, and every prefix of each, to a fuzz target: the regression test
// that needs no fuzzer. Prints how many inputs there were; a broken invariant aborts.

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

// Prefixes of a long seed cost its square.
constexpr size_t kPrefixesUpTo = 2'048;

size_t replay(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::vector<char> content{std::istreambuf_iterator<char>(file), {}};
  size_t inputs = 0;
  for (size_t size = content.size() > kPrefixesUpTo ? content.size() : 0; size <= content.size();
       ++size, ++inputs) {
    // A copy of its own size, so that AddressSanitizer sees a read past the end.
    const std::vector<uint8_t> input(content.begin(), content.begin() + static_cast<ptrdiff_t>(size));
    LLVMFuzzerTestOneInput(input.data(), input.size());
  }
  return inputs;
}

}  // namespace

int main(int argc, char** argv) {
  size_t files = 0;
  size_t inputs = 0;
  for (int i = 1; i < argc; ++i)
    for (const auto& entry : std::filesystem::directory_iterator(argv[i])) {
      if (!entry.is_regular_file()) continue;
      inputs += replay(entry.path());
      ++files;
    }
  std::printf("%zu inputs from %zu files\n", inputs, files);
  return files > 0 ? 0 : 1;
}
