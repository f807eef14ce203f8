# libtorch from the unpacked PyPI wheel, CPU part only: libtorch.so would pull in libtorch_cuda.
# torch/ stays beside nvidia/ because the RPATH inside libtorch_cpu.so is relative.
set(_torch "${PENSTOCK_TORCH_SITE}/torch")
if(NOT EXISTS "${_torch}/lib/libtorch_cpu.so")
  message(FATAL_ERROR "libtorch is not in ${_torch}: run deploy/bootstrap --torch, or set PENSTOCK_DEPS_DIR")
endif()
foreach(lib c10 torch_cpu)
  add_library(torch::${lib} SHARED IMPORTED GLOBAL)
  set_target_properties(torch::${lib} PROPERTIES IMPORTED_LOCATION "${_torch}/lib/lib${lib}.so")
endforeach()
add_library(penstock_torch INTERFACE)
target_include_directories(penstock_torch SYSTEM INTERFACE "${_torch}/include")
target_link_libraries(penstock_torch INTERFACE
  -Wl,--no-as-needed torch::torch_cpu torch::c10 -Wl,--as-needed)
target_link_options(penstock_torch INTERFACE "-Wl,-rpath,${_torch}/lib" -Wl,--allow-shlib-undefined)

# penstock_torch_cuda: libtorch's CUDA kernels for one executable. They register themselves when
# libtorch_cuda.so is loaded, and nothing of ours calls into it; so an empty library of that name is
# enough to link with, and only running the executable needs the whole torch package.
if(PENSTOCK_CUDA)
  set(_stubs "${CMAKE_BINARY_DIR}/link-stubs")
  file(WRITE "${_stubs}/empty.cc" "")
  add_library(penstock_torch_cuda_stub SHARED "${_stubs}/empty.cc")
  set_target_properties(penstock_torch_cuda_stub PROPERTIES
    OUTPUT_NAME torch_cuda LIBRARY_OUTPUT_DIRECTORY "${_stubs}")
  add_library(penstock_torch_cuda INTERFACE)
  add_dependencies(penstock_torch_cuda penstock_torch_cuda_stub)
  target_link_libraries(penstock_torch_cuda INTERFACE
    "$<LINK_ONLY:penstock_torch>" -Wl,--no-as-needed "-L${_stubs}" -ltorch_cuda -Wl,--as-needed)
endif()
