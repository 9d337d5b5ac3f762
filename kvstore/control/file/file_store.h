// A control store for one process, in a file that survives it.
#pragma once

#include <memory>
#include <string>

#include "kvstore/async/loop.h"
#include "kvstore/control/local_store.h"
#include "kvstore/io/workers.h"

namespace cairn::kv {

// Holds the folder's lock as long as it lives. Every change is a new file, synced and renamed in
// the place of the old one; leases live as long as the process.
class FileStore {
 public:
  // Uses `folder`/control and `folder`/control.lock, which it makes. kConflict when another process
  // has them, kCorrupt when the file is damaged. Blocks. The references must outlive this.
  static Result<std::unique_ptr<FileStore>> Open(Loop& loop, Clock& clock, Workers& workers,
                                                 const std::string& folder);
  ~FileStore();

  ControlStore& store() { return *store_; }

 private:
  FileStore(Loop& loop, Clock& clock, Workers& workers, std::string folder, int lock_fd,
            ControlState state);
  Task<Status> Keep(std::string state);

  Workers& workers_;
  const std::string folder_;
  const int lock_fd_;
  std::unique_ptr<LocalStore> store_;
};

}  // namespace cairn::kv
