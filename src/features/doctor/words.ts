/** A stretch of time in words short enough for a line. */
export function span(ms: number): string {
  const secs = Math.round(ms / 1000);
  if (secs < 120) return `${secs} s`;
  if (secs < 7_200) return `${Math.round(secs / 60)} min`;
  if (secs < 172_800) return `${Math.round(secs / 3600)} h`;
  return `${Math.round(secs / 86_400)} days`;
}

export function stamp(ms: number): string {
  return new Date(ms).toISOString();
}
