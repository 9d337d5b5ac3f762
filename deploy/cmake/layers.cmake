# kv_layer(): one folder as one library, with the one line that says what it may use.
# tests/tidy reads the same USES lists and fails on an #include that they do not allow.

add_library(cairn_flags INTERFACE)
target_include_directories(cairn_flags INTERFACE ${PROJECT_SOURCE_DIR})
target_compile_options(cairn_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wnon-virtual-dtor -Woverloaded-virtual -Werror
  -fno-omit-frame-pointer)
target_link_libraries(cairn_flags INTERFACE Threads::Threads)
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  # clang 14 warns of -Wsign-conversion under -Wconversion; g++ (the main compiler) does not.
  target_compile_options(cairn_flags INTERFACE -Wno-sign-conversion -Wno-gnu-zero-variadic-macro-arguments)
endif()
if(CAIRN_SANITIZE)
  # The vptr check needs run-time types, which product code does not have.
  target_compile_options(cairn_flags INTERFACE -fsanitize=${CAIRN_SANITIZE} -fno-sanitize=vptr -fno-sanitize-recover=all)
  target_link_options(cairn_flags INTERFACE -fsanitize=${CAIRN_SANITIZE})
endif()

# Product code neither throws nor asks for types at run time.
add_library(cairn_product INTERFACE)
target_link_libraries(cairn_product INTERFACE cairn_flags)
target_compile_options(cairn_product INTERFACE -fno-exceptions -fno-rtti)

# kv_layer(<name> [EXCEPTIONS] [USES <layer>...] [PACKAGES <link target>...] SOURCES <file>...)
#   USES      the layers whose headers this one may include (what those use comes along).
#   PACKAGES  libraries from outside.
#   EXCEPTIONS  for a layer that wraps a library which throws; nothing may leave the layer.
function(kv_layer name)
  cmake_parse_arguments(LAYER "EXCEPTIONS" "" "USES;PACKAGES;SOURCES" ${ARGN})
  if(LAYER_SOURCES)
    add_library(${name} STATIC ${LAYER_SOURCES})
    set(scope PUBLIC)
    if(LAYER_EXCEPTIONS)
      target_link_libraries(${name} PRIVATE cairn_flags)
    else()
      target_link_libraries(${name} PRIVATE cairn_product)
    endif()
    target_include_directories(${name} PUBLIC ${PROJECT_SOURCE_DIR})
    if(name MATCHES "^(kvstore|erasure)")  # They are in libcairn.so too.
      set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE ON
        CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
    endif()
  else()
    add_library(${name} INTERFACE)
    set(scope INTERFACE)
    target_include_directories(${name} INTERFACE ${PROJECT_SOURCE_DIR})
  endif()
  target_link_libraries(${name} ${scope} ${LAYER_USES} ${LAYER_PACKAGES})
endfunction()

# kv_test(<name> USES <layer>... SOURCES <file>... [LABELS <label>...])
#   A GoogleTest program; each of its cases becomes one ctest case.
function(kv_test name)
  cmake_parse_arguments(TEST "" "" "USES;PACKAGES;SOURCES;LABELS" ${ARGN})
  add_executable(${name} ${TEST_SOURCES})
  # What is tested is compiled as it ships; the tests themselves compile a quarter faster so.
  target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O1>)
  target_link_libraries(${name} PRIVATE cairn_flags tests_support ${TEST_USES} ${TEST_PACKAGES}
    GTest::gmock GTest::gtest_main)
  gtest_discover_tests(${name} TEST_PREFIX "${name}." DISCOVERY_TIMEOUT 60
    PROPERTIES TIMEOUT 900 LABELS "${TEST_LABELS}")
endfunction()
