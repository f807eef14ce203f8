# Language level, warnings, hardening and output folders for every target.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
set(CMAKE_CXX_FLAGS_RELEASE "-O2")
set(CMAKE_CXX_FLAGS_DEBUG "-O1 -g1")

# Designated initialisers leave members at their defaults on purpose.
add_compile_options(-Wall -Wextra -Wno-missing-field-initializers -fstack-protector-strong -fno-omit-frame-pointer)
if(PENSTOCK_UNITY AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options(-Wno-subobject-linkage)  # meant for headers, and an included source looks like one
endif()
if(PENSTOCK_WERROR)
  add_compile_options(-Werror)
endif()
if(CMAKE_BUILD_TYPE STREQUAL "Release")
  add_compile_definitions(_FORTIFY_SOURCE=2 _GLIBCXX_ASSERTIONS)
endif()
add_link_options(-Wl,-z,relro,-z,now)
if(PENSTOCK_SANITIZE)
  # GCC 12 takes the standard library for uninitialized when it is instrumented.
  add_compile_options(-fsanitize=${PENSTOCK_SANITIZE} -fno-sanitize-recover=all -Wno-maybe-uninitialized)
  add_link_options(-fsanitize=${PENSTOCK_SANITIZE})
endif()

find_program(CCACHE ccache)
if(CCACHE)
  # Paths relative to the checkout, so that checkouts share the cache.
  set(PENSTOCK_COMPILER_LAUNCHER env "CCACHE_BASEDIR=${CMAKE_SOURCE_DIR}" CCACHE_NOHASHDIR=1 CCACHE_DEPEND=1 "${CCACHE}")
  set(CMAKE_C_COMPILER_LAUNCHER ${PENSTOCK_COMPILER_LAUNCHER})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${PENSTOCK_COMPILER_LAUNCHER})
endif()
find_program(MOLD mold)
if(MOLD)
  # Each part of a program begins a page: in 1.10, thread-local variables after code that ends with
  # a page are placed outside of the read-only part, and the program does not start.
  add_link_options(-fuse-ld=mold -Wl,-z,separate-code)
endif()
