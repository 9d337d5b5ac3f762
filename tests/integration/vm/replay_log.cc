// Applies what dm-log-writes has logged to another device, up to a point: a power cut there.
//
// usage: replay_log count LOG                  prints how many entries there are
//        replay_log find LOG MARK             prints how many entries come before that mark
//        replay_log apply LOG DEVICE FROM TO  applies entries FROM..TO-1, and prints the last mark
//                                             before TO (or "none")
// The log's format is the kernel's (drivers/md/dm-log-writes.c): a sector with the number of
// entries, then each entry as a sector with its header (and a mark's text) and its data.
#include <fcntl.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

constexpr uint64_t kMagic = 0x6a736677736872;
constexpr const char* kEndMark = "dm-log-writes-end";  // The kernel's own.
constexpr uint64_t kFlagDiscard = 4;
constexpr uint64_t kFlagMark = 8;

struct Super {
  uint64_t magic;
  uint64_t version;
  uint64_t entries;
  uint32_t sector_size;
};

struct Entry {
  uint64_t sector;  // These two in units of 512 bytes.
  uint64_t sectors;
  uint64_t flags;
  uint64_t text_size;
};

void Need(bool good, const char* what) {
  if (good) return;
  std::perror(what);
  std::exit(2);
}

int Open(const char* path, int flags) {
  const int fd = open(path, flags);
  Need(fd >= 0, path);
  return fd;
}

Super ReadSuper(int log) {
  Super super;
  Need(pread(log, &super, sizeof(super), 0) == sizeof(super), "log");
  Need(super.magic == kMagic && super.version == 1, "not a log of dm-log-writes");
  return super;
}

// Walks through the entries before `to`; `use` gets each one's number, header, mark and place.
template <typename Use>
void ForEach(int log, uint64_t to, Use use) {
  const Super super = ReadSuper(log);
  uint64_t at = super.sector_size;
  for (uint64_t i = 0; i < to && i < super.entries; ++i) {
    Entry entry;
    Need(pread(log, &entry, sizeof(entry), static_cast<off_t>(at)) == sizeof(entry), "entry");
    std::string mark;
    if ((entry.flags & kFlagMark) != 0) {
      mark.resize(entry.text_size);
      Need(pread(log, mark.data(), mark.size(), static_cast<off_t>(at + sizeof(entry))) ==
               static_cast<ssize_t>(mark.size()),
           "mark");
      mark = mark.c_str();
    }
    at += super.sector_size;
    use(i, entry, mark, at);
    if ((entry.flags & kFlagDiscard) == 0) at += entry.sectors * 512;
  }
}

int Find(const char* log_path, const std::string& wanted) {
  uint64_t found = 0;
  ForEach(Open(log_path, O_RDONLY), UINT64_MAX,
          [&](uint64_t i, const Entry&, const std::string& mark, uint64_t) {
            if (mark == wanted) found = i;
          });
  std::printf("%" PRIu64 "\n", found);
  return found != 0 ? 0 : 1;
}

int Apply(const char* log_path, const char* device_path, uint64_t from, uint64_t to) {
  const int log = Open(log_path, O_RDONLY);
  const int device = Open(device_path, O_RDWR);
  std::string last_mark = "none";
  std::vector<char> data;
  ForEach(log, to, [&](uint64_t i, const Entry& entry, const std::string& mark, uint64_t at) {
    if (!mark.empty() && mark != kEndMark) last_mark = mark;
    // What is discarded may as well stay.
    if (i < from || entry.sectors == 0 || (entry.flags & kFlagDiscard) != 0) return;
    data.resize(entry.sectors * 512);
    const auto size = static_cast<ssize_t>(data.size());
    Need(pread(log, data.data(), data.size(), static_cast<off_t>(at)) == size, "data");
    Need(pwrite(device, data.data(), data.size(), static_cast<off_t>(entry.sector * 512)) == size,
         "device");
  });
  Need(fsync(device) == 0, "sync");
  std::printf("%s\n", last_mark.c_str());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string verb = argc > 2 ? argv[1] : "";
  if (verb == "count") {
    std::printf("%" PRIu64 "\n", ReadSuper(Open(argv[2], O_RDONLY)).entries);
    return 0;
  }
  if (verb == "find" && argc > 3) return Find(argv[2], argv[3]);
  if (verb != "apply" || argc < 6) return 2;
  return Apply(argv[2], argv[3], std::strtoull(argv[4], nullptr, 10),
               std::strtoull(argv[5], nullptr, 10));
}
