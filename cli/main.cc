// penstock: one command for serving, talking to a server, and finding out why one does not work.
#include "cli/commands.h"

int main(int argc, char** argv) {
  return penstock::cli::Run({argv + (argc > 0 ? 1 : 0), argv + argc});
}
