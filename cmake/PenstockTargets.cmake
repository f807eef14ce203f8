# One library per idea; sources are listed, never globbed.
#
#   penstock_library(name SOURCES a.cc b.cc DEPS penstock_common ...)   static; header-only if no sources
#     ALONE c.cc ...: sources that are compiled each on its own, since they share names in anonymous namespaces
#   penstock_binary(name SOURCES main.cc DEPS ...)                      lands in build/bin
#   penstock_test(name SOURCES a_test.cc DEPS ...) GoogleTest; each TEST is a ctest case

# Compiles up to eight files of a folder at once: parsing headers is most of a compilation, so this takes
# a third of the time.
function(penstock_unity name)
  set_target_properties(${name} PROPERTIES UNITY_BUILD ${PENSTOCK_UNITY} UNITY_BUILD_MODE GROUP)
  foreach(source ${ARGN})
    get_filename_component(folder "${source}" DIRECTORY)
    string(MAKE_C_IDENTIFIER "files_${folder}" folder)
    math(EXPR ${folder} "${${folder}} + 1")
    math(EXPR batch "(${${folder}} - 1) / 8")
    set_source_files_properties("${source}" PROPERTIES UNITY_GROUP "${folder}_${batch}")
  endforeach()
endfunction()

function(penstock_library name)
  cmake_parse_arguments(A "" "" "SOURCES;ALONE;DEPS" ${ARGN})
  if(A_SOURCES)
    add_library(${name} STATIC ${A_SOURCES} ${A_ALONE})
    set(scope PUBLIC)
    penstock_unity(${name} ${A_SOURCES})
  else()
    add_library(${name} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_include_directories(${name} ${scope} "${CMAKE_SOURCE_DIR}")
  target_link_libraries(${name} ${scope} ${A_DEPS})
endfunction()

function(penstock_binary name)
  cmake_parse_arguments(A "" "" "SOURCES;DEPS" ${ARGN})
  add_executable(${name} ${A_SOURCES})
  penstock_unity(${name} ${A_SOURCES})
  target_include_directories(${name} PRIVATE "${CMAKE_SOURCE_DIR}")
  target_link_libraries(${name} PRIVATE ${A_DEPS})
endfunction()

# WHOLE: all cases in one process, for many short ones. Their results are in test-results/NAME.xml.
function(penstock_test name)
  if(NOT PENSTOCK_TESTS)
    return()
  endif()
  cmake_parse_arguments(A "WHOLE" "" "SOURCES;ALONE;DEPS" ${ARGN})
  add_executable(${name} ${A_SOURCES} ${A_ALONE})
  penstock_unity(${name} ${A_SOURCES})
  target_compile_options(${name} PRIVATE -O1)  # compiles a fifth faster than -O2
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/tests")
  target_include_directories(${name} PRIVATE "${CMAKE_SOURCE_DIR}")
  target_link_libraries(${name} PRIVATE ${A_DEPS} penstock_test_paths GTest::gmock GTest::gtest_main)
  if(A_WHOLE)
    add_test(NAME ${name}
      COMMAND ${name} "--gtest_output=xml:${CMAKE_BINARY_DIR}/test-results/${name}.xml")
    set_tests_properties(${name} PROPERTIES TIMEOUT 300)
  else()
    gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST PROPERTIES TIMEOUT 120)
  endif()
  add_dependencies(penstock_tests ${name})
endfunction()
