import { codexHindrances } from "./codex-trust";
import { distrust, isTrusted } from "./folder-trust";
import { isFileOff, switchedOff } from "./hook-switches";
import { jsonTable, type Look, settingsLayers } from "./settings-layers";
import { type Site, shownPath } from "./sites";

/**
 * Why a harness does not run our hooks of one of its files: a sentence for each reason, to be read after the harness's
 * name, with what to do about it. None where nothing is known that keeps it from running them. What a harness was started
 * with, and what it remembers elsewhere, is not known here.
 */
export async function hindrances(look: Look, site: Site): Promise<string[]> {
  const { harness, level, path } = site;
  if (harness === "codex") return codexHindrances(look, site);
  const isKnown = await isTrusted(look, harness);
  const why = isKnown ? null : distrust(harness, level);
  if (why !== null) return [why];
  const layers = await settingsLayers(look, harness);
  const counting = layers.filter(({ of }) => of !== "project" || isKnown);
  const own = (site.format === "flat" ? await jsonTable(look.files, path) : null) ?? {};
  return [
    ...switchedOff(harness, counting, look.grounds),
    ...(isFileOff(site, own)
      ? [
          `runs no hooks of ${shownPath(path, look.grounds)}, because it has "disableAllHooks": true: take that out`,
        ]
      : []),
  ];
}
