import { runService } from '@ambit/service';
import { RunnerConfig } from './config.js';
import { RunnerModule } from './runner.module.js';

await runService('mcp-runner', RunnerModule, { config: RunnerConfig });
