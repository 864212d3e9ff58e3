/** Reads Vitest's JSON report: how many passed and failed, and which numbered scenarios. Pure. */

const SCENARIO = /^S(\d+[a-z]?):/;

/**
 * A file that could not even be loaded has no tests to count, so it counts as one failure.
 * @param report what Vitest's JSON reporter wrote
 */
export function summarise(report) {
  const tests = report.testResults.flatMap((file) =>
    file.assertionResults.map((test) => ({ ...test, file: file.name })),
  );
  const broken = report.testResults.filter(
    (file) => file.status === "failed" && !file.assertionResults.some(({ status }) => status === "failed"),
  );
  const failed = tests.filter(({ status }) => status === "failed");
  const passed = tests.filter(({ status }) => status === "passed");
  const skipped = tests.filter((test) => !failed.includes(test) && !passed.includes(test));
  return {
    passed: passed.length,
    failed: failed.length + broken.length,
    failures: [
      ...broken.map(({ name }) => `${name}: could not run`),
      ...failed.map(({ file, fullName }) => `${file}: ${fullName}`),
    ],
    skipped: skipped.map(({ fullName }) => fullName),
    scenarios: scenariosOf(tests),
  };
}

/**
 * A scenario fails with any test of its number, and passes when all of them did; a filter may have left some out.
 * The number is on the test or on its suite.
 */
function scenariosOf(tests) {
  const outcomes = new Map();
  for (const { title, ancestorTitles, status } of tests) {
    for (const name of [title, ...ancestorTitles]) {
      const number = SCENARIO.exec(name)?.[1];
      if (number !== undefined) outcomes.set(number, [...(outcomes.get(number) ?? []), status]);
    }
  }
  const order = (a, b) => Number.parseInt(a, 10) - Number.parseInt(b, 10) || (a < b ? -1 : 1);
  const numbers = [...outcomes.keys()].sort(order);
  const failed = numbers.filter((number) => outcomes.get(number).includes("failed"));
  const passed = numbers.filter((number) => outcomes.get(number).every((status) => status === "passed"));
  const skipped = numbers.filter((number) => !failed.includes(number) && !passed.includes(number));
  return { passed, failed, skipped };
}

/** Rows of text as aligned columns; the last column of numbers is aligned to the right by its writer. */
export function table(rows) {
  const widths = rows[0].map((_, column) => Math.max(...rows.map((row) => row[column].length)));
  return rows
    .map((row) =>
      row
        .map((text, column) => text.padEnd(widths[column]))
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}

/** Empty when there was none. */
export function scenarioTable(scenarios) {
  const rows = Object.entries(scenarios).filter(([, numbers]) => numbers.length > 0);
  if (rows.length === 0) return "";
  const lines = rows.map(([name, numbers]) => [name, String(numbers.length).padStart(3), numbers.join(" ")]);
  return table([["scenarios", "  #", "numbers"], ...lines]);
}
