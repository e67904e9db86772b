import { Answers, type Call } from '@ambit/bus';
import { toolGateway, type Output, type Parsed, type Returns } from '@ambit/contracts';
import { Controller, Inject } from '@nestjs/common';
import { Toolsets } from './toolsets.js';
import { ToolService } from './tool.service.js';

@Controller()
export class ToolHandlers {
  constructor(
    @Inject(ToolService) private readonly tools: ToolService,
    @Inject(Toolsets) private readonly toolsets: Toolsets,
  ) {}

  @Answers(toolGateway.listTools)
  list(input: Parsed<typeof toolGateway.listTools>): Promise<Output<typeof toolGateway.listTools>> {
    return this.tools.list(input);
  }

  @Answers(toolGateway.askTool)
  diagnose({ name, arguments: input, sessionId }: Parsed<typeof toolGateway.askTool>): Promise<Returns<typeof toolGateway.askTool>> {
    return this.tools.diagnose(name, input, sessionId);
  }

  @Answers(toolGateway.registerWorker)
  register(
    input: Parsed<typeof toolGateway.registerWorker>,
    call: Call<typeof toolGateway.registerWorker>,
  ): Promise<Returns<typeof toolGateway.registerWorker>> {
    return this.toolsets.register(call.keys.agentId, input);
  }
}
