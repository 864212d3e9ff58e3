import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** Settings of Gemini CLI, which Qwen Code shares: no updates, no statistics. `security` is about trust. */
export function writeQuietSettings(folder: string, selectedType: string, security: object): void {
  const settings = {
    security: { auth: { selectedType }, ...security },
    general: { enableAutoUpdate: false, disableAutoUpdate: true, disableUpdateNag: true },
    privacy: { usageStatisticsEnabled: false },
    telemetry: { enabled: false },
  };
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "settings.json"), JSON.stringify(settings));
}
