#!/usr/bin/env node
// The client that the suite starts for each scenario. It is none: it has the broker of a running system be the client, and waits for that.
import { argv, env } from 'node:process';

const answer = await fetch(env.AMBIT_CONFORMANCE_DRIVER, {
  method: 'POST',
  body: JSON.stringify({
    url: argv.at(-1),
    scenario: env.MCP_CONFORMANCE_SCENARIO,
    context: JSON.parse(env.MCP_CONFORMANCE_CONTEXT ?? '{}'),
  }),
});
process.stdout.write(`${await answer.text()}\n`);
process.exitCode = answer.ok ? 0 : 1;
