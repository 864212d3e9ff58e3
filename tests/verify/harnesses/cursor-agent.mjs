/** Cursor's local agent for one prompt: node cursor-agent.mjs <the SDK's main module> <repository> <prompt> */
const [sdk, cwd, prompt] = process.argv.slice(2);
const { Agent } = await import(sdk);

const agent = await Agent.create({
  apiKey: "scripted",
  model: { id: "scripted" },
  local: { cwd, settingSources: ["project", "user"], enableAgentRetries: false },
});
const run = await agent.send(prompt);
for await (const event of run.stream()) process.stdout.write(`${JSON.stringify(event)}\n`);
process.stdout.write(`${JSON.stringify(await run.wait())}\n`);
await agent[Symbol.asyncDispose]?.();
