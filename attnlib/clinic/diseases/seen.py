"""Where each mistake was seen in public: issues and pull requests on GitHub.

Questions about a mistake, and reports that turned out to be none, are left out.
"""

# By number: owner/repo#number, one after another.
_SEEN = {
    "M01": "delzac/cntkx#10 SKaiNET-developers/SKaiNET#880",
    "M02": "chelsea0x3b/dfdx#171 lucidrains/vit-pytorch#65 omihub777/ViT-CIFAR#11 "
    "omihub777/ViT-CIFAR#12 FrancescoSaverioZuppichini/ViT#1 "
    "FareedKhan-dev/train-llm-from-scratch#3 juho-lee/set_transformer#18 "
    "aladdinpersson/Machine-Learning-Collection#65 "
    "Graylab/DL4Proteins-notebooks#12",
    "M03": "huggingface/transformers#38290 AI-Hypercomputer/maxtext#3138 "
    "NVIDIA/Megatron-LM#848",
    "M04": "jadore801120/attention-is-all-you-need-pytorch#52 FudanNLP/fastNLP#254 "
    "PetrochukM/PyTorch-NLP#2 nerdai/llms-from-scratch-rs#30 "
    "labmlai/annotated_deep_learning_paper_implementations#146 "
    "nerminnuraydogan/vision-transformer#1 catalyst-team/catalyst#285",
    "M05": "facebookresearch/detr#247",
    "M07": "rasbt/LLMs-from-scratch#1061 pytorch/pytorch#170415 pytorch/pytorch#170404 "
    "pytorch/pytorch#120668 pytorch/pytorch#27968 pytorch/pytorch#86120 "
    "hkproj/pytorch-transformer#19 nishide-dev/unturtle#56",
    "M08": "vllm-project/speculators#691 huggingface/diffusers#14342 "
    "huggingface/transformers#48363 unslothai/unsloth#1762 mlverse/torch#1208 "
    "huggingface/transformers#205",
    "M09": "georg-wolflein/good-features#1",
    "M10": "huggingface/pytorch-image-models#2236",
    "M11": "lucidrains/nGPT-pytorch#11 ohdearquant/lattice#373 "
    "flashinfer-ai/flashinfer#4267 flashinfer-ai/flashinfer#4401 "
    "ai-glimpse/toynlp#50",
    "M13": "NVIDIA/apex#1105 NVIDIA/apex#1052 facebookresearch/fairseq#3575 "
    "huggingface/lerobot#710 InternLM/lmdeploy#3152 "
    "vllm-project/vllm-ascend#1382",
    "M14": "pytorch/pytorch#103963 pytorch/pytorch#103749 pytorch/pytorch#109517 "
    "pytorch/pytorch#41508 pytorch/pytorch#40932 pytorch/pytorch#26098 "
    "pytorch/pytorch#63271 pytorch/pytorch#160064 pytorch/pytorch#42323 "
    "pytorch/pytorch#190486 jadore801120/attention-is-all-you-need-pytorch#5 "
    "ml-explore/mlx#2608 tracel-ai/burn#4697 Xilinx/brevitas#1591 "
    "openvinotoolkit/openvino#36016 robertknight/rten#1321 "
    "facebookresearch/xformers#360",
    "M15": "hyunwoongko/transformer#40 lsdefine/attention-is-all-you-need-keras#16 "
    "keras-team/keras-io#1046",
    "M16": "keras-team/keras-io#482 keras-team/keras#23038 keras-team/keras#21284 "
    "huggingface/transformers#41966 AI-Hypercomputer/maxtext#878 "
    "mlverse/torch#1208",
    "M17": "lsdefine/attention-is-all-you-need-keras#36 unifyai/ivy#1572",
    "M18": "pbloem/former#10 RVC-Boss/GPT-SoVITS#965",
    "M19": "pytorch/pytorch#108108 Dao-AILab/flash-attention#282 "
    "Dao-AILab/flash-attention#517 Dao-AILab/flash-attention#1778 "
    "ml-explore/mlx#2836 ml-explore/mlx#2967 onnx/onnx#8054 onnx/onnx#8068 "
    "microsoft/onnxruntime#28958",
    "M20": "hyunwoongko/transformer#15 "
    "649453932/Chinese-Text-Classification-Pytorch#53 "
    "649453932/Chinese-Text-Classification-Pytorch#10",
    "M21": "jsbaan/transformer-from-scratch#6 ajhalthor/Transformer-Neural-Network#8 "
    "gazelle93/Transformer-Various-Positional-Encoding#1 "
    "meta-pytorch/opacus#825 xieenze/Trans2Seg#4",
    "M23": "om-ai-lab/OmDet#19 IBM/TabFormer#14 pytorch/pytorch#122959 "
    "pytorch/pytorch#63560 shinseung428/pix2seq-pytorch#7 "
    "KasperGroesLudvigsen/influenza_transformer#9 "
    "rish-16/tokenlearner-pytorch#1",
    "M24": "Dao-AILab/flash-attention#739 Dao-AILab/flash-attention#318 "
    "Dao-AILab/flash-attention#641 Dao-AILab/flash-attention#789 "
    "DachengLi1/LongChat#30 lm-sys/FastChat#2059 apple/ml-ferret#9 "
    "PrimeIntellect-ai/prime-rl#2681",
    "M25": "Dao-AILab/flash-attention#37 Dao-AILab/flash-attention#80 "
    "Dao-AILab/flash-attention#571 Dao-AILab/flash-attention#1063 "
    "Dao-AILab/flash-attention#1104 Dao-AILab/flash-attention#1990 "
    "eole-nlp/eole#149 OpenNMT/OpenNMT-py#2589",
    "M26": "huggingface/transformers#25199 huggingface/transformers#40462 "
    "rasbt/LLMs-from-scratch#750 rasbt/LLMs-from-scratch#838 "
    "NeuraLegion/shainet#111 huggingface/nanotron#427 "
    "naklecha/llama3-from-scratch#20 ooples/AiDotNet#2074 "
    "tenstorrent/tt-metal#26844 InternLM/lmdeploy#2639",
    "M27": "RobertCsordas/moeut#6 NeuraLegion/shainet#110 skyzh/tiny-llm#46 "
    "rajveer43/VeloxQuant-MLX#389 rajveer43/VeloxQuant-MLX#171 "
    "EleutherAI/gpt-neox#363 nntile/nntile#360 patrick-kidger/equinox#704",
    "M28": "unslothai/unsloth#3795 unslothai/unsloth#3803 unslothai/unsloth#3837 "
    "unslothai/unsloth#4078 rasbt/reasoning-from-scratch#33 "
    "mosaicml/examples#257 thu-nics/C2C#19 lucidrains/x-transformers#185",
    "M29": "huggingface/transformers#20761 huggingface/transformers#5285 "
    "huggingface/transformers#1761 huggingface/transformers#15292 "
    "huggingface/transformers#36537 huggingface/sentence-transformers#3879 "
    "EleutherAI/gpt-neox#650",
    "M30": "Kyubyong/transformer#38 jadore801120/attention-is-all-you-need-pytorch#32 "
    "maxjcohen/transformer#62 SamLynnEvans/Transformer#25 "
    "DongjunLee/transformer-tensorflow#6 BrianPulfer/PapersReimplementations#9 "
    "gc-os-ai/pyaptamer#607 datawhalechina/base-llm#67",
    "M31": "ml-explore/mlx#3071 paiml/aprender#2143 NVIDIA/TensorRT-LLM#1611 "
    "baichuan-inc/Baichuan2#225 antofuller/CROMA#12 "
    "lucidrains/x-transformers#85",
    "M32": "huggingface/transformers#39408 huggingface/transformers#29623 "
    "vllm-project/vllm#3385 vllm-project/vllm#29777 vllm-project/vllm#28980 "
    "unslothai/unsloth#8253",
    "M33": "onnx/onnx#7274 apple/axlearn#842 ekzhang/jax-js#180 PSAL-POSTECH/ONNXim#34 "
    "HazyResearch/HipKittens#22 state-spaces/mamba#462 "
    "EricLBuehler/candle-vllm#52",
    "M34": "pytorch/pytorch#124464 pytorch/pytorch#99293 meta-pytorch/torchtune#1791 "
    "meta-pytorch/torchtune#1803 huggingface/pytorch-image-models#1978 "
    "facebookresearch/vjepa2#160 NVIDIA/torch-harmonics#221 suno-ai/bark#662 "
    "NVIDIA/apex#1449",
    "M35": "ultralytics/ultralytics#24990 huggingface/transformers#17437 "
    "huggingface/transformers#18057 huggingface/transformers#24638 "
    "tinygrad/tinygrad#4985 tinygrad/tinygrad#7830 stanford-crfm/mistral#67 "
    "lucidrains/imagen-pytorch#69 NVIDIA/kvpress#268 "
    "Dao-AILab/flash-attention#613",
    "M36": "flashinfer-ai/flashinfer#1178 flashinfer-ai/flashinfer#4401 "
    "FluxML/NNkernels.jl#16 Dao-AILab/flash-attention#1930 "
    "pytorch/pytorch#121558",
    "M37": "sgl-project/sgl-kernel-xpu#491 Dao-AILab/flash-attention#1016 "
    "Dao-AILab/flash-attention#1025 vllm-project/vllm#7022 "
    "NVIDIA/TransformerEngine#3391 NVIDIA/Megatron-LM#6590",
    "M38": "Cerebras/modelzoo#85 flagos-ai/FlagScale#210 "
    "huggingface/transformers#45676",
    "M39": "pytorch/pytorch#166378 pytorch/pytorch#171361 pytorch/pytorch#171409 "
    "phlippe/uvadlc_notebooks#92 layer6ai-labs/T-Fixup#8 pytorch/pytorch#18334 "
    "facebookresearch/xformers#179 hongyi-zhang/Fixup#8",
    "M40": "pytorch/examples#1196 milesial/Pytorch-UNet#468 milesial/Pytorch-UNet#470 "
    "Lightning-AI/pytorch-lightning#9606 TorchSSL/TorchSSL#59 "
    "rwth-i6/returnn#1595 harubaru/waifu-diffusion#64 NCAR/miles-credit#141",
    "M41": "huggingface/transformers#21381 huggingface/diffusers#3404 "
    "mlfoundations/open_clip#573 ai2cm/ace#1493 pytorch/pytorch#7617",
    "M42": "pytorch/pytorch#34537 pytorch/pytorch#47583 pytorch/pytorch#82430 "
    "google-research/bert#994",
    "M43": "pytorch/pytorch#86120 pytorch/pytorch#97111 pytorch/pytorch#94428 "
    "pytorch/pytorch#190486",
    "M44": "microsoft/ProDA#20 microsoft/ProDA#43 "
    "labmlai/annotated_deep_learning_paper_implementations#66 "
    "jongwooko/Pytorch-MiniLM#2 pytorch/pytorch#5282 "
    "huggingface/transformers#3040 NightShade99/Self-Supervised-Vision#5",
    "M45": "pytorch/pytorch#101967",
}
SEEN = {code: tuple(text.split()) for code, text in _SEEN.items()}
