#include "launcher/library_error.h"

#include <fcntl.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string_view>

#include "launcher/child_output.h"
#include "launcher/memory_limit.h"
#include "launcher/unique_fd.h"

namespace penstock::launcher {
namespace {

constexpr std::string_view kInstall =
    "run `pip install torch==2.11.0`, in a venv if need be, and set PENSTOCK_TORCH_DIR to its "
    "site-packages/torch";

bool Has(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }

// The part of `line` after `intro`; empty if `line` does not contain `intro`.
std::string After(const std::string& line, std::string_view intro) {
  const std::size_t found = line.find(intro);
  return found == std::string::npos ? "" : line.substr(found + intro.size());
}

// The last file of this name that the linker tried and could not read, with the reason. The
// linker's own error does not name it: after such a file it searches the remaining folders and
// reports "no such file".
std::string UnreadableFile(ChildSpec program, const std::string& library) {
  program.environment.emplace_back("LD_DEBUG=libs");
  const auto said = RunForOutput(program);
  std::istringstream lines(said.ok() ? said->text : "");
  std::string unreadable;
  for (std::string line; std::getline(lines, line);) {
    const std::string file = After(line, "trying file=");
    if (!file.ends_with("/" + library)) continue;
    const UniqueFd opened(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
    if (opened.open() || errno == ENOENT || errno == ENOTDIR) continue;
    unreadable = file + ": " + std::strerror(errno);
  }
  return unreadable;
}

// What to do about `what`, the linker's message on a library that it could not use or on a symbol
// that it did not find. Empty if the message is not about libtorch.
std::string TorchRemedy(std::string_view what) {
  const bool mentions_torch = Has(what, "libtorch") || Has(what, "libc10") ||
                              Has(what, "symbol: _ZN2at") || Has(what, "symbol: _ZN3c10") ||
                              Has(what, "symbol: _ZNK3c10");
  if (!mentions_torch) return "";
  if (Has(what, "undefined symbol") || Has(what, "version `")) {
    return ": this libtorch is not that of torch 2.11: " + std::string(kInstall);
  }
  if (SaysNoMemory(what)) {
    return ": memory is short, or the file system is mounted with noexec";
  }
  return ": the file is broken: install it again, `pip install --force-reinstall torch==2.11.0`";
}

}  // namespace

std::string LibraryError(const std::string& line, const ChildSpec& program) {
  std::string what = After(line, "error while loading shared libraries: ");
  if (what.empty()) what = After(line, "symbol lookup error: ");
  if (!Has(what, "cannot open shared object file")) return what + TorchRemedy(what);
  const std::string library = what.substr(0, what.find(':'));
  const std::string unreadable = UnreadableFile(program, library);
  if (!unreadable.empty()) {
    return unreadable + ": let the user of the server read the file and enter its folders";
  }
  if (!library.starts_with("libtorch") && !library.starts_with("libc10")) return what;
  const char* given = std::getenv("PENSTOCK_TORCH_DIR");
  const std::string where = given == nullptr ? "" : " in PENSTOCK_TORCH_DIR=" + std::string(given);
  return what + ": torch 2.11 is not installed" + where + ": " + std::string(kInstall);
}

}  // namespace penstock::launcher
