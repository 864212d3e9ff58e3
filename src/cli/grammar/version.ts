declare const __COTENANT_VERSION__: string | undefined;

export function version(): string {
  return typeof __COTENANT_VERSION__ === "undefined" ? "0.0.0-source" : __COTENANT_VERSION__;
}
