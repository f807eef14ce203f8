# The CUDA compiler and libraries from the wheels that deploy/build_cuda unpacked; no GPU, no driver
# and no installed toolkit is needed.
#
# nvcc is called by a rule of our own: as a CMake language it would take over the host compiler's
# options, C++ standard and system include folders from the libraries that a kernel's headers need.
set(PENSTOCK_CUDA_ROOT "${PENSTOCK_DEPS_DIR}/cuda/nvidia" CACHE PATH "Folder that holds cu13/ and nccl/")
set(_nvcc "${PENSTOCK_CUDA_ROOT}/cu13/bin/nvcc")
if(NOT EXISTS "${_nvcc}")
  message(FATAL_ERROR "no CUDA compiler in ${PENSTOCK_CUDA_ROOT}: run `make cuda`")
endif()

# penstock_cuda: what host code needs; the libraries have the names that torch 2.11 uses.
add_library(penstock_cuda INTERFACE)
target_include_directories(penstock_cuda SYSTEM INTERFACE
  "${PENSTOCK_CUDA_ROOT}/cu13/include" "${PENSTOCK_CUDA_ROOT}/nccl/include")
target_link_libraries(penstock_cuda INTERFACE
  "${PENSTOCK_CUDA_ROOT}/cu13/lib/libcudart.so.13"
  "${PENSTOCK_CUDA_ROOT}/cu13/lib/libcublasLt.so.13"
  "${PENSTOCK_CUDA_ROOT}/nccl/lib/libnccl.so.2")
target_link_options(penstock_cuda INTERFACE
  "-Wl,-rpath,${PENSTOCK_CUDA_ROOT}/cu13/lib:${PENSTOCK_CUDA_ROOT}/nccl/lib" -Wl,--allow-shlib-undefined)

# penstock_cuda_kernels(name a.cu …): a static library of device code for A100, H100 and H200, with
# PTX for what comes later.
function(penstock_cuda_kernels name)
  set(objects "")
  foreach(source ${ARGN})
    get_filename_component(stem "${source}" NAME_WE)
    get_filename_component(source "${source}" ABSOLUTE)
    set(object "${CMAKE_CURRENT_BINARY_DIR}/${stem}.cu.o")
    add_custom_command(OUTPUT "${object}" DEPENDS "${source}" DEPFILE "${object}.d"
      COMMAND ${PENSTOCK_COMPILER_LAUNCHER} "${_nvcc}" -c "${source}" -o "${object}"
        -MD -MF "${object}.d" -std=c++20 -O3 -I "${CMAKE_SOURCE_DIR}" --expt-relaxed-constexpr -Xcompiler=-fPIC
        -gencode arch=compute_80,code=sm_80 -gencode arch=compute_90a,code=sm_90a
        -gencode arch=compute_90,code=compute_90
      COMMENT "Compiling ${stem}.cu for CUDA" VERBATIM)
    list(APPEND objects "${object}")
  endforeach()
  add_library(${name} STATIC ${objects})
  set_target_properties(${name} PROPERTIES LINKER_LANGUAGE CXX)
  target_link_libraries(${name} PUBLIC penstock_cuda)
endfunction()
