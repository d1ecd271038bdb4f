package io.nowcalls;
final class Tls {}
